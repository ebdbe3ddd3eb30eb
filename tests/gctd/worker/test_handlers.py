"""A worker takes its next job before the result of the last one is stored, and returns a failed job with a bounded delay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from eventlog.commands import Commands
from eventlog.commit import Proposal
from eventlog.testing.memory import MemoryLog
from gctd.broker.blobs import MemoryBlobs
from gctd.broker.job import Job
from gctd.domain.analysis import Analysis, Blob, Summary
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import FailTask, QueueTask, RetryTask, StartTask
from gctd.domain.task.events import TaskCompleted
from gctd.domain.task.state import Task, TaskStatus
from gctd.scan.isolation.output import OnLog
from gctd.worker.attempts.attempt_log import LogTargets
from gctd.worker.attempts.handlers import Handlers
from gctd.worker.work import Discovered, Equipment, OnStage, WorkFailed
from tests.support.tracker.queued import queued_task

AT = datetime(2026, 1, 1, tzinfo=UTC)


class AtOnce:
    """Work that is done at once."""

    equipment = Equipment()

    async def discover(self, repo: Repo) -> Discovered:
        raise NotImplementedError

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        return Analysis(
            id="a",
            ref=task.ref,
            commit_sha="c" * 40,
            summary=Summary(average=1.0, combined=1.0, exceeded=0, total_funcs=1),
            measured=Summary(average=1.0, combined=1.0, exceeded=0, total_funcs=1),
            states={"measured": 1},
            store_source="never",
            engine="fake",
            engine_version="1",
            crap_version="v0",
            go_version="go0",
            flags=(),
            report=Blob(digest="0" * 64, size=0),
            analyzed_at=AT,
            duration_ms=0,
        )


class Fails(AtOnce):
    """Work that fails, and may succeed later."""

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        raise WorkFailed("there is no network")


class Queue:
    """The broker's side of the jobs: it notes the acknowledgements."""

    def __init__(self) -> None:
        self.told: list[list[tuple[str, bytes]]] = []

    def job(self, id_: str) -> Job:
        return Job("scan", id_, b"{}", 1, 1, 600.0, cast("Any", self), id_, "jobs", "workers")

    async def send_batch(self, messages: Sequence[tuple[str, bytes, bytes]], timeout: float) -> None:  # noqa: ASYNC109 - as the real one
        self.told.append([(subject, payload) for subject, _, payload in messages])


class Slow:
    """A log on which completions wait for a signal."""

    def __init__(self) -> None:
        self.log = MemoryLog(REGISTRY)
        self.commands = Commands(self.log)
        self.go_on = asyncio.Event()

    async def hold_completions(self, proposals: Sequence[Proposal]) -> None:
        if any(isinstance(event.data, TaskCompleted) for proposal in proposals for event in proposal.commit.events):
            await self.go_on.wait()

    async def queue(self, id_: str) -> None:
        queued = queued_task(AT, id_)
        await self.commands.execute(TASK, id_, QueueTask(queued))

    async def retried(self, id_: str, times: int) -> None:
        """Let a task fail as often, and retry it after each time."""
        for attempt in range(1, times + 1):
            failed = FailTask(attempt=attempt, session="old", reason="no", permanent=True, retry_at=AT, at=AT)
            for command in (StartTask(worker="w", session="old", at=AT), failed, RetryTask(attempts=3, at=AT)):
                await self.commands.execute(TASK, id_, command)

    async def task(self, id_: str) -> Task:
        last = await self.log.last(TASK.aggregate(id_))
        assert last is not None
        task: Task = last.state
        return task

    async def status(self, id_: str) -> TaskStatus:
        return (await self.task(id_)).status


@pytest.fixture
async def slow() -> Slow:
    made = Slow()
    for id_ in ("one", "two"):
        await made.queue(id_)
    made.log.before = made.hold_completions
    return made


def handlers(slow: Slow, work: AtOnce | None = None) -> Handlers:
    logs = LogTargets(transcripts=cast("Any", None), blobs=MemoryBlobs())
    work = work or AtOnce()
    return Handlers(worker="w", session="s", log=slow.log, commands=slow.commands, work=work, logs=logs, retry_delay=10)


async def test_the_next_job_is_worked_on_while_the_last_result_is_being_stored(slow: Slow) -> None:
    handling, queue = handlers(slow), Queue()
    async with asyncio.timeout(30):
        for id_ in ("one", "two"):
            await handling.handle(queue.job(id_))
    assert [await slow.status(id_) for id_ in ("one", "two")] == [TaskStatus.RUNNING] * 2
    assert queue.told == []  # no job is acknowledged before its result is stored
    slow.go_on.set()
    await handling.settled(30)
    assert [await slow.status(id_) for id_ in ("one", "two")] == [TaskStatus.COMPLETED] * 2
    assert sorted(told for together in queue.told for told in together) == [("one", b"+ACK"), ("two", b"+ACK")]


async def test_a_late_report_is_given_up_and_its_job_not_acknowledged(slow: Slow) -> None:
    handling, queue = handlers(slow), Queue()
    async with asyncio.timeout(30):
        await handling.handle(queue.job("one"))
        await handling.settled(0.05)
    assert queue.told == []
    assert await slow.status("one") is TaskStatus.RUNNING
    slow.go_on.set()


@pytest.mark.parametrize(("before", "seconds"), [(0, 10), (2, 40), (15, 3600), (90, 3600)])
async def test_the_wait_for_the_next_attempt_doubles_up_to_an_hour(slow: Slow, before: int, seconds: int) -> None:
    """The numbers of attempts continue if a user retries a task."""
    handling, queue = handlers(slow, Fails()), Queue()
    await slow.retried("one", before)
    begin = datetime.now(UTC)
    async with asyncio.timeout(30):
        await handling.handle(queue.job("one"))
    task = await slow.task("one")
    assert (task.status, task.attempt, task.reason) == (TaskStatus.PENDING, before + 1, "there is no network")
    assert task.retry_at is not None
    assert begin <= task.retry_at - timedelta(seconds=seconds) <= datetime.now(UTC)
