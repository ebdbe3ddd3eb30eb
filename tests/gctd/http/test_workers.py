"""Workers as others see them: their reports, their pauses and their ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gctd.engines.registry import NAMES
from tests.support.pace import within
from tests.support.programs import warm
from tests.support.tracker.system import FAKE_WORKER, Program, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

ENGINES = dict.fromkeys(("fake", *NAMES), "1")
REPO = "https://example.com/owner/name"


async def schedule(system: TrackerSystem) -> list[str]:
    """Schedule an analysis of all projects; the ids of its tasks."""
    return [task["id"] for task in await system.post("/api/repos/analyze", {"repo_url": REPO})]


async def worker(system: TrackerSystem, id_: str) -> Any:
    """The worker as the API shows it, None if it does not."""
    return next((one for one in await system.get("/api/workers") if one["id"] == id_), None)


async def until(system: TrackerSystem, id_: str, **wanted: Any) -> Any:
    """Wait until a worker shows these values."""

    async def shows() -> Any:
        found = await worker(system, id_)
        return found if found and all(found[name] == value for name, value in wanted.items()) else None

    return await wait_until(shows, timeout=20, every=0.02)


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path) as running:
        yield running


async def test_a_worker_shows_its_equipment_its_job_and_its_usage(system: TrackerSystem) -> None:
    """Its children's use is its own."""
    process = await system.start_worker(1, FAKE_SECONDS="300", FAKE_CHILD="1", GCTD_CONCURRENCY="2")
    idle = await until(system, "worker-1", status="idle")
    assert idle["pid"] == process.process.pid
    assert (idle["concurrency"], idle["tasks"]) == (2, [])
    assert (idle["version"], idle["engines"], idle["go_version"], idle["sandbox"]) == (version("gctd"), ENGINES, "go0", "none")
    assert (idle["fast_concurrency"], idle["fetches_go"], idle["platform"]) == (1, False, "linux/amd64")
    before = datetime.now(UTC)
    await system.register(REPO)
    (id_,) = await schedule(system)
    busy = await until(system, "worker-1", status="busy", tasks=[id_])
    assert before <= datetime.fromisoformat(busy["heard_at"]) <= datetime.now(UTC)

    async def shows_the_child() -> bool:
        now = await worker(system, "worker-1")
        return bool(now["memory"] > idle["memory"] + (60 << 20) and now["cpu"] > 0.1)

    await wait_until(shows_the_child, timeout=20, every=0.1)
    await process.kill()
    gone = await until(system, "worker-1", status="gone")
    assert (gone["cpu"], gone["memory"], gone["concurrency"], gone["engines"]) == (None, None, None, {})
    assert gone["heard_at"] is None


async def test_a_paused_worker_s_share_goes_to_the_other_also_after_restarts_and_comes_back_within_two_seconds(
    system: TrackerSystem,
) -> None:
    paused = await system.start_worker(1, FAKE_PROJECTS="5")
    await system.start_worker(2, FAKE_PROJECTS="5")
    await system.register(REPO)
    await system.post("/api/workers/worker-1/pause")
    await until(system, "worker-1", status="paused")
    assert await _who_worked(system) == {"worker-2"}

    assert await paused.stop() == 0
    await until(system, "worker-1", status="gone")
    paused = await system.start_worker(1, FAKE_PROJECTS="5")
    assert system.serve is not None
    assert await system.serve.stop() == 0
    await system.start_serve()
    assert (await worker(system, "worker-1"))["status"] == "paused"
    assert await _who_worked(system) == {"worker-2"}

    await system.post("/api/workers/worker-2/pause")
    await until(system, "worker-2", status="paused")
    ids = await schedule(system)
    with within(2):
        await system.post("/api/workers/worker-1/unpause")
        task = await system.until_task(ids[0], "running", "completed")
    assert task["worker"] == "worker-1"


async def _who_worked(system: TrackerSystem) -> set[str]:
    """The workers of ten tasks that are scheduled now."""
    ids = [*await schedule(system), *await schedule(system)]
    assert len(ids) == 10
    return {(await system.until_task(id_, "completed"))["worker"] for id_ in ids}


async def test_a_pause_leaves_running_jobs_alone(system: TrackerSystem, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    await system.start_worker(1, FAKE_UNTIL=str(go_on))
    await system.register(REPO)
    (id_,) = await schedule(system)
    await system.until_task(id_, "running")
    await system.post("/api/workers/worker-1/pause")
    await until(system, "worker-1", status="paused")
    go_on.touch()
    assert (await system.until_task(id_, "completed"))["attempt"] == 1


async def test_a_second_delivery_of_a_job_under_way_changes_nothing(system: TrackerSystem, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    worker_1 = await system.start_worker(1, FAKE_UNTIL=str(go_on), GCTD_CONCURRENCY="2")
    await system.register(REPO)
    (id_,) = await schedule(system)
    await system.until_task(id_, "running")
    async with system.log() as log:
        jetstream = log.connection.client.jetstream()
        await jetstream.publish(f"crap.jobs.scan.{id_}", b"{}", headers={"Nats-Msg-Id": "second"})

        async def refused() -> bool:
            return (await jetstream.stream_info("crap_jobs_scan")).state.messages == 1

        await wait_until(refused, timeout=30)
    await until(system, "worker-1", status="busy", tasks=[id_])
    go_on.touch()
    assert (await system.until_task(id_, "completed"))["attempt"] == 1
    await until(system, "worker-1", status="idle", tasks=[])
    assert worker_1.process.returncode is None
    (next_,) = await schedule(system)
    assert (await system.until_task(next_, "completed"))["worker"] == "worker-1"


async def test_a_draining_worker_finishes_its_job_and_takes_no_new_one(tmp_path: Path) -> None:
    """Its presence and its lease last 2 s here. They continue while it drains, which takes longer."""
    async with tracker_system(tmp_path, GCTD_ACK_WAIT="2s", GCTD_PRESENCE_TTL="2s") as system:
        go_on = tmp_path / "go on"
        process = await system.start_worker(1, FAKE_SECONDS="5", FAKE_UNTIL=str(go_on))
        await system.register(REPO)
        (first,) = await schedule(system)
        await system.until_task(first, "running")
        process.process.terminate()
        await until(system, "worker-1", status="draining", tasks=[first])
        (second,) = await schedule(system)
        go_on.touch()
        assert await asyncio.wait_for(process.process.wait(), 60) == 0
        assert (await system.get(f"/api/tasks/{second}"))["status"] == "queued"
        done = await system.get(f"/api/tasks/{first}")
        assert (done["status"], done["attempt"], done["worker"]) == ("completed", 1, "worker-1")
        assert (await worker(system, "worker-1"))["status"] == "gone"


async def test_a_worker_that_cannot_finish_in_time_hands_back_and_ends_with_0(system: TrackerSystem) -> None:
    process = await system.start_worker(1, FAKE_SECONDS="300", GCTD_DRAIN_TIMEOUT="1s")
    await system.register(REPO)
    (id_,) = await schedule(system)
    await system.until_task(id_, "running")
    await system.start_worker(2)
    assert await process.stop(timeout=60) == 0
    task = await system.until_task(id_, "completed")
    assert task["worker"] == "worker-2"


async def test_a_worker_asked_for_one_job_does_one_and_ends(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_PROJECTS="2")
    await system.register(REPO)
    await system.post("/api/workers/worker-1/pause")
    await until(system, "worker-1", status="paused")
    ids = await schedule(system)
    once = await system.start("once", *FAKE_WORKER, "--once", GCTD_WORKER_ID="once")
    assert await asyncio.wait_for(once.process.wait(), 30) == 0
    tasks = [await system.get(f"/api/tasks/{id_}") for id_ in ids]
    assert sorted(task["status"] for task in tasks) == ["completed", "queued"]


async def test_workers_without_an_id_and_with_caches_of_their_own_are_two(system: TrackerSystem) -> None:
    async def start(name: str) -> Program:
        return await system.start(name, *FAKE_WORKER, GCTD_CACHE_DIRECTORY=str(system.directory / name))

    started = [await start("cache-a"), await start("cache-b")]

    async def both_are_idle() -> bool:
        return [one["status"] for one in await system.get("/api/workers")] == ["idle", "idle"]

    await wait_until(both_are_idle, timeout=20, every=0.05)
    assert [await one.stop() for one in started] == [0, 0]


async def test_the_command_line_lists_pauses_and_unpauses_workers(system: TrackerSystem) -> None:
    await system.start_worker(1)

    async def gctd(*arguments: str) -> str:
        done = await asyncio.to_thread(warm.run, "gctd", *arguments, environment=system.environment)
        assert done.returncode == 0
        return done.stdout

    await gctd("worker", "pause", "worker-1")
    await until(system, "worker-1", status="paused")
    (listed,) = json.loads(await gctd("worker", "list", "--json"))
    assert (listed["id"], listed["status"], listed["go_version"]) == ("worker-1", "paused", "go0")
    await gctd("worker", "unpause", "worker-1")
    await until(system, "worker-1", status="idle")


async def test_a_worker_with_a_full_disk_takes_no_jobs_says_why_and_continues_with_room(system: TrackerSystem) -> None:
    free = system.directory / "free"
    free.write_text(str(1 << 40))
    await system.start_worker(1, FAKE_FREE=str(free))
    await system.register(REPO)
    free.write_text(str(100 << 20))
    full = await until(system, "worker-1", status="full")
    assert full["reason"].startswith("disk full: 100 MiB free in "), full["reason"]
    assert full["reason"].endswith(", and a job needs 512 MiB")
    (task,) = await schedule(system)

    async def gctd(*arguments: str) -> str:
        return (await asyncio.to_thread(warm.run, "gctd", *arguments, environment=system.environment)).stdout

    assert full["reason"] in await gctd("worker", "list")
    (found,) = [one for one in json.loads(await gctd("doctor", "--json")) if one["check"] == "workers"]
    assert (found["status"], full["reason"] in found["detail"]) == ("warn", True), found
    assert "make room" in found["fix"]
    status, metrics = await system.status("/metrics")
    assert (status, 'status="full"} 1.0' in str(metrics)) == (200, True)
    shown = await system.get(f"/api/tasks/{task}")
    assert (shown["status"], shown["attempt"]) == ("queued", 0)
    free.write_text(str(1 << 40))
    done = await system.until_task(task, "completed")
    assert done["attempt"] == 1
    assert (await until(system, "worker-1", status="idle"))["reason"] == ""


async def test_a_job_that_comes_after_the_disk_has_become_full_goes_back(system: TrackerSystem) -> None:
    """Between two looks at the disk too: an attempt would be lost."""
    free = system.directory / "free"
    free.write_text(str(1 << 40))
    await system.start_worker(1, FAKE_FREE=str(free), GCTD_PRESENCE_TTL="30s")
    await system.register(REPO)
    free.write_text("0")
    (task,) = await schedule(system)
    await until(system, "worker-1", status="full")
    shown = await system.get(f"/api/tasks/{task}")
    assert (shown["status"], shown["attempt"]) == ("queued", 0)
