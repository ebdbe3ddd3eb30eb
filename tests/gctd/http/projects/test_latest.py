"""The latest analysis of a project is of the ref that it tracks. Analyses of other refs are in the history under their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import GoRepo, make
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

MAIN = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0, "a.go:Get": 4.0})
NEWER = attrs.evolve(MAIN, commit_sha="c" * 40, functions={"a.go:Parse": 10.0, "a.go:Get": 4.0})
BRANCH = attrs.evolve(MAIN, commit_sha="b" * 40, ref="topic", functions={"a.go:Parse": 90.0})
PINNED = attrs.evolve(MAIN, commit_sha="d" * 40, ref="d" * 40, functions={"a.go:Parse": 80.0})


async def latest(project: Project) -> tuple[str, str, str]:
    """The commits of the latest analysis in the list, by its id and in the table of the command, which are the same."""
    listed = [one for one in await project.system.get("/api/repos") if one["repo_info"]["url"] == project.url]
    by_id = await project.system.get(await project.path)
    shown = await gctd("repo", "list", "--json", url=project.system.url, home=project.directory.parent)
    (told,) = [one["analyses"] for one in shown.json if one["repository"]["URL"] == project.url]
    one, two, three = (commit["repo_info"]["commit_sha"][0] for commit in (*listed, by_id, *told))
    return one, two, three


async def set_ref(project: Project, ref: str | None) -> None:
    await project.system.post("/api/repo-config", {"url": project.url, "ref": ref})


async def commits(project: Project, query: str = "") -> str:
    return "".join(one["commit_sha"][0] for one in await project.system.get(f"{await project.path}/history{query}"))


async def test_an_analysis_of_another_ref_does_not_become_the_latest(project: Project) -> None:
    await project.analyze(MAIN, BRANCH, PINNED)
    assert await latest(project) == ("a", "a", "a")
    async with project.system.http.get(f"{project.system.url}{await project.path}/badge.svg") as badge:
        assert "8.0" in await badge.text()
    exported = await gctd("repo", "export", project.url, url=project.system.url, home=project.directory.parent)
    assert exported.json["repo_info"]["commit_sha"] == MAIN.commit_sha
    await project.analyze(NEWER)
    assert await latest(project) == ("c", "c", "c")


async def test_other_refs_are_in_the_history_under_their_names(project: Project) -> None:
    await project.analyze(MAIN, BRANCH, NEWER, PINNED)
    assert await commits(project) == "dcba"
    assert [await commits(project, f"?ref={ref}") for ref in ("main", "refs/heads/main", "topic", "d" * 40)] == [
        "ca",
        "ca",
        "b",
        "d",
    ]
    status, problem = await project.system.status(f"{await project.path}/history?ref=none")
    assert (status, problem["message"].endswith(" of none")) == (404, True)
    path = await project.path
    assert (await project.system.get(f"{path}?at=topic"))["repo_info"]["commit_sha"] == BRANCH.commit_sha
    assert (await project.system.get(f"{path}/diff?to=topic&from=main"))["from"]["commit_sha"] == NEWER.commit_sha
    shown = await gctd(
        "repo", "history", project.url, "--ref", "topic", "--json", url=project.system.url, home=project.directory.parent
    )
    assert [one["commit_sha"] for one in shown.json] == [BRANCH.commit_sha]


async def test_a_change_of_the_tracked_ref_changes_the_latest_analysis(project: Project) -> None:
    await project.analyze(MAIN, BRANCH, PINNED)
    for ref, commit in (("topic", "b"), ("d" * 40, "d"), ("HEAD", "a"), ("refs/heads/topic", "b"), (None, "a")):
        await set_ref(project, ref)
        assert await latest(project) == (commit,) * 3, ref
    await set_ref(project, "unknown")
    status, problem = await project.system.status(await project.path)
    assert (status, problem["message"]) == (
        404,
        "the ref that the project tracks has no analysis yet; the history has analyses of other refs",
    )
    assert not [one for one in await project.system.get("/api/repos") if one["repo_info"]["url"] == project.url]
    assert await commits(project) == "dba"


async def test_only_the_run_behind_the_latest_analysis_is_scored_again(project: Project) -> None:
    with_profile = [attrs.evolve(one, profile="mode: set\n") for one in (MAIN, BRANCH)]
    await project.analyze(*with_profile)
    tasks = await project.system.post("/api/repos/rescore", {"repo_url": project.url})
    assert [(task["commit_sha"], task["ref"]) for task in tasks] == [(MAIN.commit_sha, "main")]
    await set_ref(project, "unknown")
    status, problem = await project.system.status("/api/repos/rescore", "POST", json={"repo_url": project.url})
    assert (status, "no latest analysis" in problem["message"]) == (409, True)


@attrs.frozen
class Checked:
    """A repository with a branch, whose worker reports what it checks out."""

    system: TrackerSystem
    repo: GoRepo

    async def analyze(self, ref: str | None = None) -> Any:
        """The task of an analysis, completed."""
        (task,) = await self.system.post("/api/repos/analyze", {"repo_url": self.repo.url, **({"ref": ref} if ref else {})})
        return await self.system.until_task(task["id"], "completed")

    async def check(self, **body: Any) -> Any:
        """The finding of a check about the only project."""
        (row,) = await self.system.post("/api/repos/check-updates", {"repo_url": self.repo.url, **body})
        return row


async def test_a_check_does_not_take_an_analysis_of_a_branch_for_a_move(
    shared: tuple[TrackerSystem, Path], tmp_path: Path
) -> None:
    checked = Checked(shared[0], make(tmp_path / "repo"))
    main = checked.repo.head()
    checked.repo.git("checkout", "--quiet", "-b", "topic")
    checked.repo.commit()
    await checked.system.register(checked.repo.url)
    await checked.analyze()
    await checked.analyze("topic")
    row = await checked.check(schedule=True)
    assert (row["ref"], row["recorded_sha"], row["moved"], row["scheduled"]) == ("main", main, False, False)
    checked.repo.git("checkout", "--quiet", "main")
    moved = checked.repo.commit()
    await checked.analyze("main")
    row = await checked.check()
    assert (row["recorded_sha"], row["moved"]) == (moved, False), "an analysis of the tracked branch by its name counts"


async def test_a_task_of_a_branch_at_the_same_commit_is_no_reason_to_schedule_nothing(
    shared: tuple[TrackerSystem, Path], tmp_path: Path
) -> None:
    checked = Checked(shared[0], make(tmp_path / "repo"))
    await checked.system.register(checked.repo.url)
    await checked.system.post("/api/workers/worker-1/pause")
    try:
        await checked.system.post("/api/repos/analyze", {"repo_url": checked.repo.url, "ref": checked.repo.head()})
        row = await checked.check(schedule=True)
        assert (row["scheduled"], row["note"]) == (True, None)
    finally:
        await checked.system.post("/api/workers/worker-1/unpause")
    await checked.system.until_task(row["task_id"], "completed")
