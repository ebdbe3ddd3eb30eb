"""The same commit twice: one test run, one analysis; `again`, other settings and a new registration run the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.cli import gctd
from tests.support.tracker.go_repo import NEEDING, make
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system

pytestmark = pytest.mark.real

RAN = ["clone", "modules", "test", "analyse", "store"]
FIRST = ["clone", "modules", "stdlib", "test", "analyse", "store"]
"""The first scan of a repository prepares Go's standard library."""
SAME = ("summary", "measured", "states", "entries", "profile_digest", "analyzed_at", "go_version", "flags", "engine", "uncovered")


async def analysed(system: TrackerSystem, url: str, **how: Any) -> tuple[Any, list[str]]:
    """The analysis of the only project as it is answered now, and the stages of its attempt."""
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url, **how})
    assert (task["status"], task["attempt"]) == ("queued", 0)
    done = await system.until_task(task["id"], "completed", "failed", timeout=110)
    assert done["status"] == "completed", done["reason"]
    (attempt,) = await system.get(f"/api/tasks/{task['id']}/attempts")
    return await system.get(f"/api/tasks/{task['id']}/result"), [stage["stage"] for stage in attempt["stages"]]


async def test_a_commit_is_tested_once_unless_asked_again(tmp_path: Path) -> None:
    ran, reused = RAN, ["clone", "store"]
    repo = make(tmp_path / "source", kind="single")
    repo.git("branch", "other")
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)
        first, stages = await analysed(system, repo.url)
        assert (stages, first["rescored_from"]) == (FIRST, None)
        second, stages = await analysed(system, repo.url)
        assert (stages, second["rescored_from"]) == (reused, first["task_id"])
        assert {name: second[name] for name in SAME} == {name: first[name] for name in SAME}
        other, stages = await analysed(system, repo.url, ref="other")
        assert (stages, other["repo_info"]["ref"], other["rescored_from"]) == (reused, "other", first["task_id"])
        # The newest request is the latest analysis, and all of them are in the history.
        history = await system.get(f"/api/repos/{first['id']}/history")
        assert [one["task_id"] for one in history] == [other["task_id"], second["task_id"], first["task_id"]]
        shown = await gctd("repo", "analyze", repo.url, url=system.url, home=tmp_path)
        assert (shown.code, f"was analysed before, by {first['task_id']}" in shown.err) == (0, True), shown.err

        third, stages = await analysed(system, repo.url, again=True)
        assert (stages, third["rescored_from"]) == (ran, None)
        fourth, stages = await analysed(system, repo.url)
        assert (stages, fourth["rescored_from"]) == (reused, third["task_id"])
        _, stages = await analysed(system, repo.url, engine="native-compat")
        assert stages == ran
        await system.post("/api/repo-config", {"url": repo.url, "test_args": "-short"})
        _, stages = await analysed(system, repo.url)
        assert stages == ran
        repo.write({"more.go": "package single\n\nfunc more() {}\n"}).commit()
        _, stages = await analysed(system, repo.url)
        assert stages == ran
        # A reused analysis is scored again from the profile of the run behind it.
        (rescoring,) = await system.post("/api/repos/rescore", {"repo_url": repo.url})
        assert (await system.until_task(rescoring["id"], "completed", "failed"))["status"] == "completed"

        await system.status(f"/api/repos/registered?url={repo.url}", "DELETE")
        await system.register(repo.url)
        _, stages = await analysed(system, repo.url)
        assert stages == ran


async def test_a_run_without_a_module_that_a_package_needs_is_not_reused(tmp_path: Path) -> None:
    """The module may be in reach by then. The reason names the failed download."""
    repo = make(tmp_path / "source", files=NEEDING)
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1, program=REAL_WORKER, GOPROXY="off")
        await system.register(repo.url)
        for expected in (FIRST, RAN):
            done, stages = await analysed(system, repo.url)
            assert (stages, done["rescored_from"]) == (expected, None)
            reasons = {package["reason"] for package in done["uncovered"]}
            assert reasons == {"build failed: module download failed: module lookup disabled by GOPROXY=off"}
