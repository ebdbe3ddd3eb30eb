"""The check for updates on the running system, against real git repositories: exactly what moved is scheduled, and once."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio

from eventlog.commands import Commands
from gctd.domain.remote.urls import parse_repo_url, repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import ConfigureProject
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task import TASK
from gctd.domain.task.commands import QueueTask
from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import GoRepo, make
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

CHECK = "/api/repos/check-updates"


@attrs.frozen
class Five:
    """A tracker that has analysed five repositories, and the repositories by name."""

    system: TrackerSystem
    repos: dict[str, GoRepo]
    unreachable: str

    async def check(self, **body: Any) -> dict[tuple[str, str | None], Any]:
        """Return the findings of a check, by the name of the repository and the project."""
        names = {repo.url: name for name, repo in self.repos.items()} | {self.unreachable: "unreachable"}
        rows = await self.system.post(CHECK, body)
        return {(names[row["repo_url"]], row["project"]): row for row in rows}


@pytest_asyncio.fixture
async def five(tmp_path: Path) -> AsyncIterator[Five]:
    """Repositories `moved`, `same`, `both` (a branch and a tag of one name), `annotated` (a tag), and one out of reach."""
    repos = {name: make(tmp_path / name) for name in ("moved", "same", "both", "annotated")}
    repos["both"].git("tag", "v1")
    repos["both"].git("branch", "v1")
    repos["annotated"].git("tag", "-a", "-m", "first", "v2")
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:  # takes connections, and never answers
        unreachable = f"https://127.0.0.1:{silent.getsockname()[1]}/owner/name"
        settings = {"GCTD_GIT_TIMEOUT": "1s", "GCTD_PRIVATE_HOSTS": "127.0.0.1"}
        async with tracker_system(tmp_path, **settings) as system:
            await system.start_worker(1, GCTD_CONCURRENCY="4", FAKE_PROJECTS="2")
            for name, url in {**{name: repo.url for name, repo in repos.items()}, "unreachable": unreachable}.items():
                await system.register(url)
                ref = {"both": "v1", "annotated": "v2"}.get(name)
                if ref is not None:
                    await system.post("/api/repo-config", {"url": url, "ref": ref})
                for task in await system.post("/api/repos/analyze", {"repo_url": url}):
                    await system.until_task(task["id"], "completed")
            yield Five(system, repos, unreachable)


async def test_exactly_the_moved_refs_are_scheduled_and_once(five: Five) -> None:
    repos = five.repos
    old = {name: repo.head() for name, repo in repos.items()}
    assert {row["moved"] for row in (await five.check()).values()} == {False}
    new = {name: repo.commit() for name, repo in repos.items() if name != "same"}
    repos["both"].git("tag", "--force", "v1")  # the tag moves, the branch of its name does not
    repos["annotated"].git("tag", "--force", "-a", "-m", "second", "v2")

    seen = await five.check()
    assert {place for place, row in seen.items() if row["moved"]} == {
        *(("moved", "."), ("moved", "p1")),
        *(("annotated", "."), ("annotated", "p1")),
    }
    assert not any(row["scheduled"] for row in seen.values())
    row = seen["moved", "."]
    assert (row["ref"], row["recorded_sha"], row["remote_sha"], row["error"]) == ("main", old["moved"], new["moved"], None)
    row = seen["annotated", "."]
    assert (row["ref"], row["recorded_sha"], row["remote_sha"]) == ("v2", old["annotated"], new["annotated"])
    assert seen["both", "."]["remote_sha"] == old["both"]
    assert {seen["unreachable", project]["error"] for project in (".", "p1")} == {"no answer within 1 s"}

    paged, address = [], f"{five.system.url}{CHECK}?limit=2"
    while address:
        async with five.system.http.post(address, json={}) as answer:
            paged += await answer.json()
            address = str(answer.links["next"]["url"]) if "next" in answer.links else ""
    assert {(row["repo_url"], row["project"]): row for row in paged} == {
        (row["repo_url"], row["project"]): row for row in seen.values()
    }
    told = await gctd("repo", "check-updates", "--json", url=five.system.url, home=five.system.directory)
    assert (told.code, {row["repo_url"]: row for row in told.json}) == (7, {row["repo_url"]: row for row in seen.values()})
    told = await gctd("repo", "check-updates", repos["same"].url, url=five.system.url, home=five.system.directory)
    assert (told.code, [row[5] for row in told.rows], told.err) == (0, ["MOVED", "no", "no"], "0 of 2 projects moved\n")

    first = await five.check(schedule=True)
    scheduled = {place for place, row in first.items() if row["scheduled"]}
    assert scheduled == {place for place, row in seen.items() if row["moved"]}
    again = await five.check(schedule=True)
    assert not any(row["scheduled"] for row in again.values())
    for name, project in scheduled:
        task = await five.system.until_task(first[name, project]["task_id"], "completed")
        assert (task["commit_sha"], task["ref"], task["project"]) == (new[name], seen[name, project]["ref"], project)
    last = await five.check(schedule=True)
    assert not any(row["moved"] or row["scheduled"] for row in last.values())
    assert last["moved", "."]["recorded_sha"] == new["moved"]


@attrs.frozen
class One:
    """A tracker, and one repository of two projects that it does not know yet."""

    system: TrackerSystem
    repo: GoRepo

    async def check(self, url: str | None = None, **body: Any) -> list[Any]:
        """The rows of a check by the server at this address."""
        async with self.system.http.post((url or self.system.url) + CHECK, json=body) as answer:
            rows: list[Any] = await answer.json()
            assert answer.status == 200, rows
            return rows

    async def ready(self, *, fails: int = 0) -> None:
        """Have its projects found. Its worker is then paused, and fails the given number of attempts."""
        await self.system.start_worker(1, FAKE_PROJECTS="2", FAKE_FAILS=str(fails))
        await self.system.register(self.repo.url)
        await self.system.post("/api/workers/worker-1/pause")

    async def go_on(self) -> None:
        """Let the worker work."""
        await self.system.post("/api/workers/worker-1/unpause")


@pytest_asyncio.fixture
async def one(tmp_path: Path) -> AsyncIterator[One]:
    async with tracker_system(tmp_path) as system:
        yield One(system, make(tmp_path / "one"))


async def test_nothing_is_scheduled_while_a_task_for_the_commit_is_under_way(one: One) -> None:
    assert await one.check() == []
    assert (await one.system.status(CHECK, "POST", json={"repo_url": one.repo.url}))[0] == 404
    await one.system.post("/api/repos", {"repo_url": one.repo.url})
    (row,) = await one.check(schedule=True)
    assert (row["project"], row["note"], row["error"]) == (None, "skipped: it is still registering", None)
    await one.ready()
    rows = await one.check()
    assert [(row["project"], row["recorded_sha"], row["moved"]) for row in rows] == [(".", None, True), ("p1", None, True)]

    asked = await one.system.post("/api/repos/analyze", {"repo_url": one.repo.url, "project": "."})
    root, p1 = await one.check(schedule=True)
    assert (root["scheduled"], root["task_id"], root["note"]) == (False, asked[0]["id"], f"{asked[0]['id']} is queued")
    assert p1["scheduled"]
    root, p1 = await one.check(schedule=True)
    assert [(row["moved"], row["scheduled"]) for row in (root, p1)] == [(True, False)] * 2
    newer = one.repo.commit()  # the task asked for by hand will find it, the other is bound to the commit before
    root, p1 = await one.check(schedule=True)
    assert [(row["remote_sha"], row["scheduled"]) for row in (root, p1)] == [(newer, False), (newer, True)]


async def test_a_task_that_never_makes_the_latest_analysis_is_no_reason_to_schedule_nothing(one: One) -> None:
    """The analysis of a pull request is of the same commit, and is never the latest of the project."""
    await one.ready()
    (asked,) = await one.system.post("/api/repos/analyze", {"repo_url": one.repo.url, "project": "."})
    async with one.system.log() as log:
        asked_for = next(event.data for event in await one.system.events(f"gctd.task.{asked['id']}"))
        pull = attrs.evolve(asked_for, id=f"{asked['id']}0", commit_sha=one.repo.head(), baseline=True)
        outcome = await Commands(log).execute(TASK, pull.id, QueueTask(pull))
        assert outcome.state.baseline
    assert (await one.system.status(f"/api/tasks/{asked['id']}", "DELETE"))[0] == 204
    root, _ = await one.check(schedule=True)
    assert (root["scheduled"], root["note"]) == (True, None)


async def test_a_commit_that_was_tried_in_vain_is_not_tried_again(one: One) -> None:
    await one.ready(fails=9)
    tasks = [row["task_id"] for row in await one.check(schedule=True)]
    await one.go_on()
    await one.system.until_task(tasks[0], "failed")
    assert (await one.system.status(f"/api/tasks/{tasks[1]}", "DELETE"))[0] == 204
    for row in await one.check(schedule=True):
        assert (row["moved"], row["scheduled"]) == (True, False)
        assert "was queued before" in row["note"]
    one.repo.commit()
    assert [row["scheduled"] for row in await one.check(schedule=True)] == [True, True]


async def test_two_servers_asked_at_the_same_moment_schedule_a_commit_once(one: One) -> None:
    await one.ready()
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    database = f"sqlite:{one.system.directory / 'other.db'}"
    await one.system.start("other", "gctd", "serve", GCTD_PORT=str(port), GCTD_DATABASE_URL=database)
    other = f"http://127.0.0.1:{port}"

    async def ready() -> bool:
        return (await one.system.status("/readyz"))[0] == 200 and await _answers(one, other)

    await wait_until(ready, timeout=30, every=0.05)
    for _ in range(3):
        one.repo.commit()
        answers = await asyncio.gather(*(one.check(url, schedule=True) for url in (one.system.url, other) * 3))
        assert Counter(row["project"] for rows in answers for row in rows if row["scheduled"]) == {".": 1, "p1": 1}
    queued = [(e.data.project, e.data.commit_sha) for e in await one.system.events() if e.type == "TaskQueued"]
    assert len(queued) == len(set(queued)) == 6


async def _answers(one: One, url: str) -> bool:
    try:
        async with one.system.http.get(url + "/readyz") as answer:
            return bool(answer.status == 200)
    except aiohttp.ClientError:
        return False


async def test_each_project_tracks_its_own_ref_and_a_renamed_default_branch_is_followed(one: One) -> None:
    await one.ready()
    first = one.repo.head()
    one.repo.git("branch", "stable")
    one.repo.git("branch", "--move", "main", "trunk")
    second = one.repo.commit()
    async with one.system.log() as log:
        known = repo_id(parse_repo_url(one.repo.url, allow_local=True).canonical)
        settings = ConfigureProject(subdir="p1", changes=ProjectConfig(ref="stable"), at=datetime.now(UTC))
        await Commands(log).execute(REPO, known, settings)
    rows = await one.check(schedule=True)
    assert [(row["ref"], row["remote_sha"], row["scheduled"]) for row in rows] == [
        ("trunk", second, True),
        ("stable", first, True),
    ]
    await one.go_on()
    for row in rows:
        await one.system.until_task(row["task_id"], "completed")
    assert not any(row["moved"] for row in await one.check())
    one.repo.git("branch", "--delete", "--force", "stable")
    root, p1 = await one.check()
    assert (root["error"], p1["error"], p1["ref"]) == (None, "no branch or tag 'stable' in the repository", "stable")
