"""A worker announces itself and its jobs until their results are stored. One that cannot be heard takes no jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventlog.commands import Commands
from eventlog.errors import Unavailable
from gctd.broker.broker import Broker, open_broker
from gctd.broker.job import Job
from gctd.broker.presence import Presence
from gctd.control.heartbeat import decoded
from gctd.domain.task import TASK
from gctd.domain.task.commands import CompleteTask, QueueTask
from gctd.domain.task.state import Task, TaskStatus
from gctd.settings import Settings
from gctd.worker import process
from gctd.worker.attempts import attempt as attempts
from gctd.worker.main import work
from gctd.worker.usage import UsageMeter
from tests.support.tracker.fake_work import FakeWork
from tests.support.tracker.queued import queued_task
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def test_a_worker_ends_with_an_error_of_its_heartbeat(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def look(_: UsageMeter) -> tuple[float, int]:
        nonlocal looks
        looks += 1
        if looks > 2:
            raise RuntimeError("the processes of this machine cannot be listed")
        return 0.0, 0

    monkeypatch.setattr(UsageMeter, "look", look)
    settings = Settings(nats_url=nats_url, cache_directory=tmp_path, presence_ttl=1.0)
    with pytest.raises(RuntimeError, match="cannot be listed"):
        async with asyncio.timeout(60):
            await work(settings, instead=FakeWork(settings))


async def test_a_job_that_cannot_go_back_while_the_worker_is_paused_does_not_end_the_worker(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause comes with the job, and the broker is away. The broker gives the job to another worker by itself."""
    settings = Settings(nats_url=nats_url, cache_directory=tmp_path, presence_ttl=1.0, worker_id="w")
    refused = asyncio.Event()

    async def next_job(_: Any, __: float, held: asyncio.Event) -> Job | None:
        if refused.is_set():
            await asyncio.sleep(0.01)
            return None
        held.set()
        return Job("scan", "task-1", b"{}", 1, 1, 60.0, None, "", "", "")  # type: ignore[arg-type]

    async def nak(_: Job, __: float) -> None:
        refused.set()
        raise Unavailable("the broker is away")

    monkeypatch.setattr(process, "next_job", next_job)
    monkeypatch.setattr(Job, "nak", nak)
    async with asyncio.timeout(60), open_broker(settings, name="test") as broker:
        working = asyncio.create_task(work(settings, instead=FakeWork(settings)))
        await refused.wait()
        assert await announced(broker, "w") == ()
        assert not working.done()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


class HeldReports:
    """Reports of results wait for a signal."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.go_on = asyncio.Event()
        self._report = attempts.report

    async def report(self, commands: Any, decider: Any, id_: str, command: Callable[[], Any], *more: Any, **named: Any) -> Any:
        if isinstance(command(), CompleteTask):
            self.waits.set()
            await self.go_on.wait()
        return await self._report(commands, decider, id_, command, *more, **named)


async def test_a_job_is_announced_until_its_result_is_stored(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(nats_url=nats_url, cache_directory=tmp_path, presence_ttl=1.0, worker_id="w")
    held = HeldReports()
    monkeypatch.setattr(attempts, "report", held.report)
    async with asyncio.timeout(60), open_broker(settings, name="test") as broker:
        await queue(broker)
        working = asyncio.create_task(work(settings, instead=FakeWork(settings)))
        await held.waits.wait()
        for _ in range(3):
            assert await announced(broker, "w") == ("task-1",)
        held.go_on.set()
        await wait_until(lambda: nothing_announced(broker, "w"))
        assert (await task(broker)).status is TaskStatus.COMPLETED
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_process_whose_id_another_one_has_taken_leaves_the_announcements_to_it(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the attempts of the other one are given up. It is on another host: on one host a lock of a file keeps the id."""
    sessions: list[str] = []
    announce, until = Presence.announce, tmp_path / "until"

    async def noted(presence: Presence, id_: str, payload: bytes) -> None:
        await announce(presence, id_, payload)
        sessions.append(decoded(payload).session)

    monkeypatch.setattr(Presence, "announce", noted)
    monkeypatch.setenv("FAKE_UNTIL", str(until))
    hosts = [Settings(nats_url=nats_url, cache_directory=tmp_path / host, presence_ttl=60.0, worker_id="w") for host in "ab"]
    async with asyncio.timeout(60), open_broker(hosts[0], name="test") as broker:
        await queue(broker)
        first = asyncio.create_task(work(hosts[0], instead=FakeWork(hosts[0])))
        await wait_until(lambda: attempted(broker))
        (one,) = set(sessions)
        second = asyncio.create_task(work(hosts[1], instead=FakeWork(hosts[1])))
        await wait_until(lambda: set(sessions) != {one})
        until.touch()
        await first
        (other,) = set(sessions) - {one}
        assert one not in sessions[sessions.index(other) :]
        assert decoded((await broker.presence.heard())["w"].payload).session == other
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def queue(broker: Broker) -> None:
    queued = queued_task(datetime.now(UTC))
    await Commands(broker.log).execute(TASK, queued.id, QueueTask(queued))
    await broker.queues.scan.publish("scan", queued.id, b"{}", dedupe=queued.id)


async def attempted(broker: Broker) -> bool:
    return (await task(broker)).status is TaskStatus.RUNNING


async def task(broker: Broker) -> Task:
    last = await broker.log.last(TASK.aggregate("task-1"), consistent=True)
    assert last is not None
    state: Task = last.state
    return state


async def announced(broker: Broker, worker: str) -> tuple[str, ...]:
    """The jobs in the next announcement of a worker."""
    before = (await broker.presence.heard()).get(worker)

    async def is_new() -> bool:
        now = (await broker.presence.heard()).get(worker)
        return now is not None and (before is None or now.at > before.at)

    await wait_until(is_new)
    return decoded((await broker.presence.heard())[worker].payload).tasks


async def nothing_announced(broker: Broker, worker: str) -> bool:
    return await announced(broker, worker) == ()
