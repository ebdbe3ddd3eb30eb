"""A job from the queue, seen through: start an attempt, do the work under its lease, report how it ended.

Discoveries and scans go the same way; what differs between them is in `_Course`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import attrs
import structlog

from eventlog import Decider, EventLog
from eventlog.commands import Commands
from eventlog.queue import Job
from gctd.control.jobs import JobKind
from gctd.domain import repo, task
from gctd.domain.analysis import Analysis
from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import Lease
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.worker.attempt import AttemptOver, attempt
from gctd.worker.reports import now, report
from gctd.worker.work import Discovered, OnStage, Work, WorkFailed

_log = structlog.get_logger(__name__)


class _Attempted(Protocol):
    """What repositories and tasks have in common."""

    @property
    def id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def lease(self) -> Lease | None: ...
    @property
    def retry_at(self) -> datetime | None: ...


S = TypeVar("S", bound=_Attempted)
R = TypeVar("R")


@attrs.frozen(kw_only=True)
class _Course(Generic[S, R]):
    """How one kind of job goes: its aggregate, the work, and the commands that report on it."""

    decider: Decider[S, Any, Any]
    work: Callable[[S, OnStage], Awaitable[R]]
    start: Callable[[], Any]
    stage: Callable[[S, str], Any] | None
    finish: Callable[[S, R], Any]
    fail: Callable[[S, str, bool, datetime], Any]


@attrs.frozen(kw_only=True)
class Retry:
    """When the next attempt after a failed one begins: `delay` seconds after the first, twice that after the second."""

    delay: float = 10.0

    def after(self, failed: int) -> float:
        """Seconds from the failure of that attempt to the next."""
        return float(self.delay * 2 ** (failed - 1))


class Handlers:
    """Handles jobs under one worker's id and session."""

    def __init__(self, *, worker: str, session: str, log: EventLog, commands: Commands, work: Work, retry: Retry) -> None:
        self._log = log
        self._commands = commands
        self._retry = retry
        self._discover = _discovery(work, worker, session)
        self._scan = _scan(work, worker, session)

    async def handle(self, job: Job) -> None:
        """See a job through; it is acknowledged, or handed back with a delay, when this returns.

        Cancelled, it hands the attempt back: another one may begin at once.
        """
        if job.kind == JobKind.SCAN:
            await self._run(self._scan, job)
        elif job.kind == JobKind.DISCOVER:
            await self._run(self._discover, job)
        else:
            _log.error("job of an unknown kind dropped", kind=job.kind, id=job.id)
            await job.ack()

    async def _run(self, course: _Course[S, R], job: Job) -> None:
        log = _log.bind(aggregate=course.decider.aggregate(job.id).subject)
        try:
            started = await report(self._commands, course.decider, job.id, course.start)
        except (Refused, NotFound) as refusal:
            log.info("job not taken", reason=str(refusal))
            await self._hand_back(course, job)
            return
        state = started.state
        log = log.bind(attempt=state.attempt)
        log.info("attempt started")
        delay = self._retry.after(state.attempt)
        try:
            result = await attempt(
                self._log,
                job,
                course.decider.aggregate(state.id),
                after=started.sequence,
                held=lambda later: later.lease == state.lease,
                work=lambda: course.work(state, self._stages(course, state)),
            )
        except AttemptOver:
            log.info("attempt was ended from outside")
            await job.ack()
        except WorkFailed as failure:
            log.info("attempt failed", reason=str(failure), permanent=failure.permanent)
            await self._fail(course, job, state, str(failure), delay, permanent=failure.permanent)
        except asyncio.CancelledError:
            await asyncio.shield(self._fail(course, job, state, "the worker was stopped", 0, permanent=False))
            raise
        except Exception as error:
            log.exception("attempt failed in a way that is not the repository's")
            await self._fail(course, job, state, f"internal error: {error!r}", delay, permanent=False)
        else:
            await self._report(course, job, state, lambda: course.finish(state, result))
            log.info("attempt finished")

    def _stages(self, course: _Course[S, R], state: S) -> OnStage:
        async def on_stage(stage: str) -> None:
            make = course.stage
            if make is not None:
                await report(self._commands, course.decider, state.id, lambda: make(state, stage))

        return on_stage

    async def _fail(self, course: _Course[S, R], job: Job, state: S, reason: str, delay: float, *, permanent: bool) -> None:
        retry_at = now() + timedelta(seconds=delay)
        await self._report(course, job, state, lambda: course.fail(state, reason, permanent, retry_at))

    async def _report(self, course: _Course[S, R], job: Job, state: S, command: Callable[[], Any]) -> None:
        """Say how the attempt ended, then let go of the job: for good, or until the next attempt is due."""
        try:
            outcome = await report(self._commands, course.decider, state.id, command)
        except (Refused, NotFound) as refusal:
            _log.info("report refused", id=state.id, reason=str(refusal))
            await job.ack()
            return
        await self._release(job, outcome.state)

    async def _hand_back(self, course: _Course[S, R], job: Job) -> None:
        """A job that cannot be taken up: forget it, or wait where its aggregate has an attempt due later."""
        last = await self._log.last(course.decider.aggregate(job.id), consistent=True)
        if last is None:
            await job.ack()
        else:
            await self._release(job, last.state)

    @staticmethod
    async def _release(job: Job, state: _Attempted) -> None:
        if state.lease is None and state.retry_at is not None:
            await job.nak(max(0.0, (state.retry_at - now()).total_seconds()))
        else:
            await job.ack()


def _discovery(work: Work, worker: str, session: str) -> _Course[Repo, Discovered]:
    async def discover(known: Repo, _: OnStage) -> Discovered:
        return await work.discover(known)

    return _Course(
        decider=repo.REPO,
        work=discover,
        start=lambda: repo.StartDiscovery(worker=worker, session=session, at=now()),
        stage=None,
        finish=lambda known, found: repo.FinishDiscovery(
            attempt=known.attempt,
            session=session,
            commit_sha=found.commit_sha,
            default_ref=found.default_ref,
            projects=found.projects,
            at=now(),
        ),
        fail=lambda known, reason, permanent, retry_at: repo.FailDiscovery(
            attempt=known.attempt,
            session=session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
        ),
    )


def _scan(work: Work, worker: str, session: str) -> _Course[Task, Analysis]:
    return _Course(
        decider=task.TASK,
        work=work.scan,
        start=lambda: task.StartTask(worker=worker, session=session, at=now()),
        stage=lambda queued, stage: task.ReachStage(attempt=queued.attempt, session=session, stage=stage, at=now()),
        finish=lambda queued, analysis: task.CompleteTask(attempt=queued.attempt, session=session, analysis=analysis, at=now()),
        fail=lambda queued, reason, permanent, retry_at: task.FailTask(
            attempt=queued.attempt,
            session=session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
        ),
    )
