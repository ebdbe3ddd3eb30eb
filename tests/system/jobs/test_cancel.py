"""The processes of a scan end with it: cancelled, deleted, or over its time, in any session."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.processes import sleeping as alive
from tests.support.programs.processes import unused_sleep
from tests.support.tracker.go_repo import make, sleeping
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def test_nothing_of_a_scan_is_alive_5_s_after_its_end(tmp_path: Path) -> None:
    """The test starts `sleep` in its own group, in a new session, and in a session whose parent is gone."""
    marker = unused_sleep()
    repo = make(tmp_path / "source", files=sleeping(marker))
    async with tracker_system(tmp_path, GCTD_MAX_ATTEMPTS="1", GCTD_PRESENCE_TTL="15s") as system:
        await system.start_worker(1, program=REAL_WORKER)
        await system.register(repo.url)

        cancelled = await _scan_that_sleeps(system, repo.url, marker)
        await system.post(f"/api/tasks/{cancelled}/cancel")
        await _gone(system, marker)
        task = await system.get(f"/api/tasks/{cancelled}")
        assert (task["status"], task["reason"]) == ("failed", "cancelled")

        deleted = await _scan_that_sleeps(system, repo.url, marker)
        assert (await system.status(f"/api/tasks/{deleted}", "DELETE"))[0] == 204
        await _gone(system, marker)
        assert (await system.status(f"/api/tasks/{deleted}"))[0] == 404

        await system.post("/api/repo-config", {"url": repo.url, "test_args": "-timeout=5s"})
        late = await _scan_that_sleeps(system, repo.url, marker)
        await system.until_task(late, "completed")
        await _gone(system, marker)
        (package,) = (await system.get(f"/api/tasks/{late}/result"))["uncovered"]
        assert package["reason"].startswith("timed out: ")
        (attempt,) = await system.get(f"/api/tasks/{late}/attempts")
        assert [stage["stage"] for stage in attempt["stages"]] == ["clone", "modules", "test", "analyse", "store"]
        log = (await system.status(f"/api/tasks/{late}/attempts/1/log"))[1]
        for said in (repo.head(), "panic: test timed out", "functions", "completed"):
            assert said in log

        # Within 1 s the tests cannot end by their own limit, which is 1 s at least.
        await system.post("/api/repo-config", {"url": repo.url, "timeout": "1s"})
        (short,) = await system.post("/api/repos/analyze", {"repo_url": repo.url, "again": True})
        await system.until_task(short["id"], "failed")
        await _gone(system, marker)


async def _scan_that_sleeps(system: TrackerSystem, url: str, marker: str) -> str:
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url})
    await wait_until(lambda: len(alive(marker)) == 3, timeout=150, every=0.05)
    id_: str = task["id"]
    return id_


async def _gone(system: TrackerSystem, marker: str) -> None:
    """Within 5 s no process and no folder of the job is left."""
    jobs = system.directory / "cache" / "jobs"

    def nothing_left() -> Any:
        return not alive(marker) and not any(path.is_dir() for path in jobs.iterdir())

    await wait_until(lambda: asyncio.to_thread(nothing_left), timeout=5, every=0.05)
