"""A worker takes its next job before the result of the last one is stored and its job acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from eventlog.broker.blobs import MemoryBlobs
from eventlog.broker.job import Job
from eventlog.commands import Commands
from eventlog.commit import Proposal
from eventlog.testing.memory import MemoryLog
from gctd.domain.analysis import Analysis, Blob, Summary
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import QueueTask
from gctd.domain.task.events import TaskCompleted
from gctd.domain.task.state import Task, TaskStatus
from gctd.scan.isolation.output import OnLog
from gctd.worker.attempts.attempt_log import LogTargets
from gctd.worker.attempts.handlers import Handlers
from gctd.worker.work import Discovered, Equipment, OnStage
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
            engine="fake",
            engine_version="1",
            crap_version="v0",
            go_version="go0",
            flags=(),
            report=Blob(digest="0" * 64, size=0),
            analyzed_at=AT,
            duration_ms=0,
        )


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

    async def status(self, id_: str) -> TaskStatus:
        last = await self.log.last(TASK.aggregate(id_))
        assert last is not None
        status: TaskStatus = last.state.status
        return status


@pytest.fixture
async def slow() -> Slow:
    made = Slow()
    for id_ in ("one", "two"):
        await made.queue(id_)
    made.log.before = made.hold_completions
    return made


def handlers(slow: Slow) -> Handlers:
    logs = LogTargets(transcripts=cast("Any", None), blobs=MemoryBlobs())
    return Handlers(worker="w", session="s", log=slow.log, commands=slow.commands, work=AtOnce(), logs=logs, retry_delay=10)


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


async def test_what_cannot_be_reported_in_time_is_given_up_and_its_job_not_acknowledged(slow: Slow) -> None:
    handling, queue = handlers(slow), Queue()
    async with asyncio.timeout(30):
        await handling.handle(queue.job("one"))
        await handling.settled(0.05)
    assert queue.told == []
    assert await slow.status("one") is TaskStatus.RUNNING
    slow.go_on.set()
