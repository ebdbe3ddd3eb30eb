"""Lanes: a job goes only to a worker that can run it, short jobs do not wait for scans, a task names a missing capability."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.errors import Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.cli.doctor.server import server_checks
from gctd.settings import SETTINGS
from tests.support.pace import slowness
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

PLAIN, NEWER, SLOW = "https://example.com/a/plain", "https://example.com/a/go1.27", "https://example.com/a/slow"
OLD_GO: dict[str, Any] = {"FAKE_ENGINES": "native", "FAKE_GO": "go1.26.8"}
NEW_GO: dict[str, Any] = {"FAKE_ENGINES": "native,native-compat", "FAKE_GO": "go1.27.1"}


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path) as running:
        yield running


async def schedule(system: TrackerSystem, url: str, **more: Any) -> str:
    """Schedule an analysis of the one project of a repository; the id of its task."""
    (task,) = await system.post("/api/repos/analyze", {"repo_url": url, **more})
    id_: str = task["id"]
    return id_


async def until_reason(system: TrackerSystem, id_: str, reason: str) -> Any:
    """Wait until a task that waits has this reason."""

    async def says() -> Any:
        task = await system.get(f"/api/tasks/{id_}")
        return task if task["reason"] == reason else None

    return await wait_until(says, timeout=30, every=0.05)


async def test_jobs_go_where_they_can_run_and_discovery_does_not_wait_for_scans(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_SLOW="6", FAKE_ENGINES="native-compat", FAKE_GO="go1.26.8")
    await system.start_worker(2, FAKE_SLOW="6", FAKE_ENGINES="native", FAKE_GO="go1.27.1")
    for url in (PLAIN, NEWER, SLOW):
        await system.register(url)
    slow = [await schedule(system, SLOW, engine=engine) for engine in ("native-compat", "native")]
    for id_ in slow:
        await system.until_task(id_, "running")
    mixed = [
        await schedule(system, url, engine=engine)
        for url, engine in [
            (PLAIN, "native-compat"),
            (PLAIN, "native"),
            (NEWER, "native"),
            (NEWER, "native"),
            (PLAIN, "native-compat"),
        ]
        * 2
    ]
    waits = []
    for number in range(10):
        began = time.monotonic()
        await system.register(f"https://example.com/b/r{number}")
        waits.append(time.monotonic() - began)
    assert max(waits) < 2 * slowness(), waits
    assert [(await system.get(f"/api/tasks/{id_}"))["status"] for id_ in slow] == ["running", "running"]
    for id_ in [*slow, *mixed]:
        task = await system.until_task(id_, "completed", "failed", "expired")
        assert (task["status"], task["attempt"]) == ("completed", 1), task
    by_worker = {id_: (await system.get(f"/api/tasks/{id_}"))["worker"] for id_ in mixed}
    assert [by_worker[id_] for id_ in mixed] == ["worker-1", "worker-2", "worker-2", "worker-2", "worker-1"] * 2


async def test_scoring_again_has_the_lane_of_short_jobs(system: TrackerSystem) -> None:
    """A scan takes until the end of the test, and a stored profile is scored before."""
    await system.start_worker(1, FAKE_SLOW="300")
    await system.register(SLOW)
    await system.register(PLAIN)
    measured = await schedule(system, PLAIN)
    await system.until_task(measured, "completed")
    scan = await schedule(system, SLOW)
    await system.until_task(scan, "running")
    async with asyncio.timeout(10 * slowness()):
        rescored = await system.post("/api/repos/rescore", {"repo_url": PLAIN})
        for task in rescored:
            # The fake run has no profile, so the scoring ends at once, either way.
            await system.until_task(task["id"], "completed", "failed")
    assert (await system.get(f"/api/tasks/{scan}"))["status"] == "running"


async def test_a_task_says_which_capability_no_worker_has_and_runs_when_one_comes(system: TrackerSystem) -> None:
    await system.start_worker(1, **OLD_GO)
    await system.register(PLAIN)
    await system.register(NEWER)
    engine, version = await schedule(system, PLAIN, engine="native-compat"), await schedule(system, NEWER)
    reason = "no worker has the engine native-compat"
    task = await until_reason(system, engine, reason)
    assert (task["status"], task["attempt"]) == ("queued", 0)
    await until_reason(system, version, "no worker has Go 1.27 or newer (the newest is go1.26.8)")
    for id_ in (engine, version):
        await system.post(f"/api/tasks/{id_}/seen")  # they wait all the same
    settings = SETTINGS.load({"url": system.url}).values
    finding = await server_checks(settings, Unavailable("not asked"))["capabilities"]()
    assert finding is not None
    assert (finding.verdict.value, reason in finding.detail) == ("warn", True)
    blocked = [event.data for event in await system.events() if event.type == "TaskBlocked"]
    assert len({(one.reason) for one in blocked}) == len(blocked) <= 4, "each reason is said once"
    await system.start_worker(2, **NEW_GO)
    for id_ in (engine, version):
        task = await system.until_task(id_, "completed")
        assert (task["worker"], task["attempt"], task["reason"]) == ("worker-2", 1, "")


async def test_a_worker_leaves_a_job_that_it_cannot_run_to_others(system: TrackerSystem) -> None:
    """The job waits where all workers take theirs, since no worker was there when it was queued."""
    first = await system.start_worker(1)
    await system.register(PLAIN)
    await first.stop()
    id_ = await schedule(system, PLAIN, engine="native-compat")
    await system.start_worker(2, **OLD_GO)
    await until_reason(system, id_, "no worker has the engine native-compat")
    await system.start_worker(3, **NEW_GO)
    task = await system.until_task(id_, "completed", "failed")
    assert (task["status"], task["worker"], task["attempt"]) == ("completed", "worker-3", 1)


async def test_a_job_in_the_lane_of_a_worker_that_dies_goes_to_another_one(system: TrackerSystem) -> None:
    """Also if the control plane dies with it."""
    await system.start_worker(1, **OLD_GO)
    lost = await system.start_worker(2, FAKE_SLOW="300", **NEW_GO)
    await system.register(SLOW)
    running = await schedule(system, SLOW, engine="native-compat")
    await system.until_task(running, "running")
    waiting = await schedule(system, SLOW, engine="native-compat")
    assert system.serve is not None
    await system.serve.kill()
    await lost.kill()
    await system.start_serve()
    await system.start_worker(3, **NEW_GO)
    for id_ in (running, waiting):
        task = await system.until_task(id_, "completed")
        assert task["worker"] == "worker-3"


async def test_a_job_for_a_paused_worker_alone_is_held_until_it_goes_on(system: TrackerSystem) -> None:
    await system.start_worker(1, **OLD_GO)
    await system.start_worker(2, **NEW_GO)
    await system.register(PLAIN)
    await system.post("/api/workers/worker-2/pause")
    await system.until_worker("worker-2", "paused")
    id_ = await schedule(system, PLAIN, engine="native-compat")
    other = await schedule(system, PLAIN)
    await system.until_task(other, "completed")
    assert (await system.get(f"/api/tasks/{id_}"))["status"] == "queued"
    await system.post("/api/workers/worker-2/unpause")
    task = await system.until_task(id_, "completed")
    assert (task["worker"], task["attempt"]) == ("worker-2", 1)


async def test_short_jobs_go_the_way_of_scans_if_no_worker_has_slots_for_them(system: TrackerSystem) -> None:
    await system.start_worker(1, GCTD_FAST_CONCURRENCY="0")
    await system.register(PLAIN)
    await system.start_worker(2)
    await system.register(NEWER)


async def test_a_short_job_in_a_lane_that_no_worker_serves_goes_the_way_of_scans(system: TrackerSystem) -> None:
    """The job is put into the lane of short jobs before a worker is there. The only worker that comes has no slots for them."""
    await system.post("/api/repos", {"repo_url": PLAIN})

    async with Connection.open(system.nats.url, name="test") as connection:

        async def placed() -> bool:
            return bool((await call(connection, "STREAM.INFO.crap_jobs_lanes"))["state"]["messages"])

        await wait_until(placed, timeout=30)
    await system.start_worker(1, GCTD_FAST_CONCURRENCY="0")
    await system.until_repo(PLAIN, "ready")
