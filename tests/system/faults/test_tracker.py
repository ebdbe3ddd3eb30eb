"""The tracker while its parts are killed: promises I1, I3, I4 and I5 with real processes (faults F1, F3, F4, F5, F14, F19)."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from eventlog import Decider
from gctd.domain import repo
from gctd.domain.task import TASK
from gctd.domain.task.state import TaskStatus
from gctd.domain.worker import WORKER
from tests.support.pace import within
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until
from tests.support.web.listener import Listener

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"
TERMINAL_EVENTS = {"TaskCompleted", "TaskFailed", "TaskExpired", "TaskCancelled"}
DECIDERS: dict[str, Decider[Any, Any, Any]] = {decider.category: decider for decider in (repo.REPO, TASK, WORKER)}
FINAL = [status.value for status in TaskStatus if status.terminal]


async def schedule(system: TrackerSystem, *, tries: int = 600) -> list[str]:
    """Schedule an analysis, repeating the same request with its key until it is answered; the ids of its tasks."""
    key = uuid4().hex
    for _ in range(tries):
        status, tasks = await system.status(
            "/api/repos/analyze", "POST", json={"repo_url": REPO}, headers={"Idempotency-Key": key}
        )
        if status == 202:
            return [task["id"] for task in tasks]
        assert system.serve is not None
        assert status in {0, 503}, (status, tasks, system.serve.log.read_text()[-5000:])
        await asyncio.sleep(0.05)
    raise AssertionError("never accepted")


async def until_all_ended(system: TrackerSystem, ids: Sequence[str], seconds: float) -> dict[str, Any]:
    """Wait until each task is in a final state."""
    tasks: dict[str, Any] = {}

    async def ended() -> bool:
        for id_ in ids:
            if id_ not in tasks:
                status, task = await system.status(f"/api/tasks/{id_}")
                if status != 200 or task["status"] not in FINAL:
                    return False
                tasks[id_] = task
        return True

    await wait_until(ended, timeout=seconds, every=0.1)
    return tasks


async def check_promises(system: TrackerSystem, ids: Sequence[str]) -> None:
    """Check I1 (each accepted task is queued once), I4 (each ended once, with at most one analysis) and I3 (tables are the fold).

    Every stored state is the fold of the events up to it.
    """
    queued, ended, analyses = Counter[str](), Counter[str](), Counter[str]()
    states: dict[str, Any] = {}
    async with system.log() as log:
        head = await log.head()
        async for commits in log.follow(after=0, until=head.last):
            for commit in commits:
                decider = DECIDERS[commit.category]
                states[commit.subject] = decider.fold((e.data for e in commit.events), states.get(commit.subject))
                assert commit.state == states[commit.subject]
                if commit.category != "gctd.task":
                    continue
                for event in commit.events:
                    queued[commit.aggregate.id] += event.type == "TaskQueued"
                    ended[commit.aggregate.id] += event.type in TERMINAL_EVENTS
                    analyses[commit.aggregate.id] += event.type == "TaskCompleted"
    assert all(queued[id_] == 1 for id_ in ids)
    assert all(count == 1 for count in queued.values())
    assert all(ended[id_] == 1 for id_ in ids)
    assert all(count <= 1 for count in ended.values())
    assert all(count <= 1 for count in analyses.values())
    assert system.serve is not None
    await system.serve.stop()
    assert await system.difference_from_a_fold() is None


async def check_stream(system: TrackerSystem, listener: Listener, first: int) -> None:
    """Check I5: the client got every event of the log after `first`, each once, in order."""
    expected = [str(event.position) for event in await system.events() if event.position.sequence > first]
    await wait_until(lambda: listener.ids[-1:] == expected[-1:], timeout=20)
    assert listener.ids == expected


async def more_events(listener: Listener, writers: Sequence[asyncio.Task[Any]]) -> None:
    """Wait until work continues: the listener has seen some more events, or all writers have ended."""
    seen = len(listener.ids)
    await wait_until(lambda: len(listener.ids) >= seen + 10 or all(writer.done() for writer in writers))


async def head(system: TrackerSystem) -> int:
    async with system.log() as log:
        return (await log.head()).last


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path) as running:
        yield running


KILLS = pytest.mark.parametrize(("kills", "requests"), [(1, 2), pytest.param(4, 6, marks=pytest.mark.long)])
"""How often a part is killed, and how many requests each of four writers makes."""


@KILLS
async def test_kill_9_of_nats_server_under_load(system: TrackerSystem, kills: int, requests: int) -> None:
    for number in (1, 2):
        await system.start_worker(number, FAKE_SECONDS="0.02", FAKE_PROJECTS="3", GCTD_CONCURRENCY="4")
    await system.register(REPO)
    first = await head(system)
    async with Listener(f"{system.url}/api/sse", after=first) as listener:
        writers = [asyncio.create_task(_write(system, requests)) for _ in range(4)]
        for _ in range(kills):
            await more_events(listener, writers)
            await system.nats.kill()
            await asyncio.sleep(0.3)
            await system.nats.start()
        ids = [id_ for written in await asyncio.gather(*writers) for id_ in written]
        tasks = await until_all_ended(system, ids, 60)
        assert {task["status"] for task in tasks.values()} == {"completed"}
        await check_stream(system, listener, first)
    await check_promises(system, ids)


async def _write(system: TrackerSystem, times: int) -> list[str]:
    ids: list[str] = []
    for _ in range(times):
        ids += await schedule(system)
    return ids


@KILLS
async def test_kill_9_of_the_control_plane_under_load(system: TrackerSystem, kills: int, requests: int) -> None:
    await system.start_worker(1, FAKE_SECONDS="0.02", FAKE_PROJECTS="3", GCTD_CONCURRENCY="4")
    await system.register(REPO)
    first = await head(system)
    async with Listener(f"{system.url}/api/sse", after=first) as listener:
        writers = [asyncio.create_task(_write(system, requests)) for _ in range(4)]
        for _ in range(kills):
            await more_events(listener, writers)
            assert system.serve is not None
            await system.serve.kill()
            await system.start_serve()
        ids = [id_ for written in await asyncio.gather(*writers) for id_ in written]
        assert len(ids) == len(set(ids)) == 4 * requests * 3
        await until_all_ended(system, ids, 60)
        await check_stream(system, listener, first)
    await check_promises(system, ids)


async def test_kill_9_of_a_worker_in_the_middle_of_its_scans(system: TrackerSystem) -> None:
    """Twice the worker dies while it scans, each time another one takes over; the third attempt completes."""
    await system.start_worker(1, FAKE_SECONDS="0.4", FAKE_DIES_AT="1,2")
    await system.register(REPO)
    ids = await schedule(system)
    for number in (2, 3):
        await system.until_task(ids[0], "pending")
        await system.begin_worker(number, FAKE_SECONDS="0.4", FAKE_DIES_AT="1,2")
    task = await system.until_task(ids[0], *FINAL, timeout=40)
    assert (task["status"], task["attempt"]) == ("completed", 3)
    await check_promises(system, ids)


async def test_a_task_whose_worker_dies_three_times_expires(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_SECONDS="0.1", FAKE_DIES_AT="1,2,3")
    await system.register(REPO)
    ids = await schedule(system)
    for number in (2, 3):
        await system.until_task(ids[0], "pending", timeout=40)
        await system.begin_worker(number, FAKE_SECONDS="0.1", FAKE_DIES_AT="1,2,3")
    task = await system.until_task(ids[0], *FINAL, timeout=40)
    assert (task["status"], task["attempt"]) == ("expired", 3)
    await check_promises(system, ids)


async def test_with_all_workers_dead_for_good_every_task_still_ends(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_QUEUE_TIMEOUT="4s") as system:
        worker = await system.start_worker(1, FAKE_SECONDS="60", FAKE_PROJECTS="3")
        await system.register(REPO)
        ids = await schedule(system)
        await system.until_task(ids[0], "running")
        await worker.kill()
        tasks = await until_all_ended(system, ids, 30)
        assert {task["status"] for task in tasks.values()} == {"expired"}
        await check_promises(system, ids)


async def test_a_lost_workers_task_is_with_another_within_30_seconds(tmp_path: Path) -> None:
    """With the presence that is the default: 15 s."""
    async with tracker_system(tmp_path, GCTD_PRESENCE_TTL="15s") as system:
        worker = await system.start_worker(1, FAKE_SECONDS="300")
        await system.register(REPO)
        (id_,) = await schedule(system)
        await system.until_task(id_, "running")
        await system.start_worker(2, FAKE_SECONDS="0")
        with within(30):
            await worker.kill()
            await system.until_task(id_, "completed")


async def test_duplicate_deliveries_change_nothing(system: TrackerSystem) -> None:
    """F14: every job is put into the queue many times over; each task is started once and ends once."""
    await system.start_worker(1, FAKE_SECONDS="0.3", GCTD_CONCURRENCY="4")
    await system.register(REPO)
    ids = await schedule(system)
    async with system.log() as log:
        jetstream = log.connection.client.jetstream()
        for number in range(5):
            for id_ in ids:
                await jetstream.publish(f"crap.jobs.scan.{id_}", b"{}", headers={"Nats-Msg-Id": f"again-{id_}-{number}"})
        tasks = await until_all_ended(system, ids, 30)
        queue = log.connection.client.jetstream()
        await wait_until(lambda: _is_empty(queue), timeout=20)
    assert {(task["status"], task["attempt"]) for task in tasks.values()} == {("completed", 1)}
    await check_promises(system, ids)


async def _is_empty(jetstream: Any) -> bool:
    info = await jetstream.stream_info("crap_jobs_scan")
    return bool(info.state.messages == 0)


async def test_jobs_that_are_lost_from_the_queue_are_given_again(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_SECONDS="0")
    await system.register(REPO)
    await system.post("/api/workers/worker-1/pause")
    await wait_until(lambda: _worker_is(system, "paused"), timeout=60)
    ids = await schedule(system)
    async with system.log() as log:
        await log.connection.client.jetstream().purge_stream("crap_jobs_scan")
    await system.post("/api/workers/worker-1/unpause")
    tasks = await until_all_ended(system, ids, 30)
    assert {task["status"] for task in tasks.values()} == {"completed"}
    await check_promises(system, ids)


async def _worker_is(system: TrackerSystem, status: str) -> bool:
    workers = await system.get("/api/workers")
    return bool(workers[0]["status"] == status)


async def test_a_wiped_stream_is_refused_not_applied_over_the_old_tables(system: TrackerSystem) -> None:
    await system.start_worker(1)
    await system.register(REPO)
    before = await system.get(f"/api/repos/status?url={REPO}")
    await system.nats.kill()
    shutil.rmtree(system.directory / "nats")
    await system.nats.start()

    async def refused() -> bool:
        status, document = await system.status("/readyz")
        return status == 503 and "recreated" in json.dumps(document)

    assert system.serve is not None
    await system.serve.kill()
    system.serve = await system.start("serve", "gctd", "serve")
    await wait_until(refused, timeout=60, every=0.1)
    assert await system.get(f"/api/repos/status?url={REPO}") == before


class TestLeases:
    async def test_a_long_job_is_one_delivery_and_one_attempt(self, tmp_path: Path) -> None:
        """A job of 8 s with a lease of 3 s."""
        async with tracker_system(tmp_path, GCTD_ACK_WAIT="3s") as system:
            await system.start_worker(1, FAKE_SECONDS="8")
            await system.start_worker(2, FAKE_SECONDS="8")
            await system.register(REPO)
            ids = await schedule(system)
            task = await system.until_task(ids[0], "running")
            async with system.log() as log:
                jetstream = log.connection.client.jetstream()

                async def redelivered() -> int:
                    return int((await jetstream.consumer_info("crap_jobs_scan", "crap-workers")).num_redelivered or 0)

                async with asyncio.timeout(25):
                    while (await system.get(f"/api/tasks/{ids[0]}"))["status"] == "running":
                        assert await redelivered() == 0
                        await asyncio.sleep(0.5)
            task = await system.until_task(ids[0], "completed")
            assert task["attempt"] == 1
            await check_promises(system, ids)

    async def test_a_worker_that_stands_still_loses_its_attempt_and_its_result(self, tmp_path: Path) -> None:
        async with tracker_system(tmp_path, GCTD_ACK_WAIT="3s") as system:
            go_on = tmp_path / "go on"
            worker = await system.start_worker(1, FAKE_UNTIL=str(go_on))
            await system.register(REPO)
            ids = await schedule(system)
            await system.until_task(ids[0], "running")
            worker.signal(signal.SIGSTOP)
            await system.start_worker(2, FAKE_SECONDS="1")
            task = await system.until_task(ids[0], "completed", timeout=30)
            worker.signal(signal.SIGCONT)
            go_on.touch()
            assert (task["attempt"], task["worker"]) == (2, "worker-2")
            assert await worker.stop() == 0
            await check_promises(system, ids)
