"""A commit that cannot be read concerns its aggregate only: the work on all others continues."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.log.nats import plain_client
from tests.support.tracker.go_repo import make
from tests.support.tracker.system import TrackerSystem, tracker_system

pytestmark = pytest.mark.real

DAMAGED, SOUND = "https://example.com/owner/a", "https://example.com/owner/b"


@pytest_asyncio.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path) as running:
        yield running


async def damage(system: TrackerSystem, subject: str) -> None:
    """Store an unreadable commit of an aggregate."""
    async with plain_client(system.nats.url) as client:
        await client.jetstream().publish(subject, b"this is no commit")


async def queued(system: TrackerSystem, url: str) -> str:
    [task] = await system.post("/api/repos/analyze", {"repo_url": url})
    return str(task["id"])


async def test_the_tasks_of_a_lost_worker_run_elsewhere_although_one_of_them_is_damaged(system: TrackerSystem) -> None:
    lost = await system.start_worker(1, GCTD_CONCURRENCY="4", FAKE_SECONDS="600")
    for url in (DAMAGED, SOUND):
        await system.register(url)
    tasks = [await queued(system, url) for url in (DAMAGED, SOUND)]
    for task in tasks:
        await system.until_task(task, "running")
    await damage(system, f"gctd.task.{tasks[0]}")
    await lost.kill()
    await system.start_worker(2)
    await system.until_task(tasks[1], "completed")


async def test_other_repositories_are_checked_for_updates_and_the_damaged_one_is_named(
    system: TrackerSystem, tmp_path: Path
) -> None:
    damaged, sound = f"file://{tmp_path}/damaged", make(tmp_path / "sound").url
    await system.start_worker(1)
    for url in (damaged, sound):
        await system.register(url)
    known = await system.get(f"/api/repos/status?url={damaged}")
    await damage(system, f"gctd.repo.{known['ID']}")
    status, found = await system.status("/api/repos/check-updates", "POST", json={"schedule": False})
    assert status == 200, found
    broken, other = found
    assert "is not a commit" in broken["error"], broken
    assert (other["repo_url"], other["error"], other["moved"]) == (sound, None, True), other


async def test_a_new_server_gives_out_jobs_although_a_waiting_task_is_damaged(system: TrackerSystem) -> None:
    worker = await system.start_worker(1)
    for url in (DAMAGED, SOUND):
        await system.register(url)
    await worker.stop()
    await damage(system, f"gctd.task.{await queued(system, DAMAGED)}")
    waiting = await queued(system, SOUND)
    assert system.serve is not None
    await system.serve.kill()
    await system.start_serve()
    await system.start_worker(2)
    await system.until_task(waiting, "completed")
    assert "dispatcher waits" not in system.serve.log.read_text()
