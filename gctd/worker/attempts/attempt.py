"""An attempt at a job: its work under the lease of the job, and its reports to the log.

An attempt ends from outside if another event of the same aggregate ends it: a user cancelled the task, or the control plane took
this worker for lost.

The broker may be away at the time of a report. A report is repeated until it is stored or refused. The attempt's fence
guards it, so it takes effect once, or not at all if the attempt is over.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

import attrs
import structlog

from eventlog import Commands, Conflict, Context, Decider, EventLog, EventLogError, Outcome, Stages, Unavailable
from gctd.broker.job import Job
from gctd.domain.analysis import Analysis
from gctd.domain.errors import NotFound, Refused
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import FailDiscovery, FinishDiscovery, StartDiscovery
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import CompleteTask, FailTask, ReachStage, ReportProgress, ResolveCommit, StartTask, StoreLog
from gctd.domain.task.events import AttemptLog, Progress
from gctd.domain.task.state import Task
from gctd.worker.attempts.attempt_log import Recording
from gctd.worker.work import Discovered, ResolvedRef, Work

S = TypeVar("S", Repo, Task)
R = TypeVar("R")
State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")

_log = structlog.get_logger(__name__)

UNWATCHED = 0.25
"""Seconds from its beginning for which an attempt is not watched, which takes a consumer on the broker: many end before."""
PATIENCE = 300.0
"""Seconds for which a report is repeated while the broker cannot be reached."""
PAUSE = 0.5
"""Seconds between two tries."""
LATE = 5.0
"""Seconds of retries to record the place of the log after an attempt was ended from outside."""


class AttemptOver(Exception):
    """The attempt was ended from outside. Its results are not reported. `state` of the aggregate has the reason."""

    def __init__(self, state: Any) -> None:
        super().__init__("the attempt is over")
        self.state = state


def now() -> datetime:
    """The time, aware, UTC."""
    return datetime.now(UTC)


async def report(
    commands: Commands,
    decider: Decider[State, Command, Event],
    id_: str,
    command: Callable[[], Command],
    context: Context | None = None,
    *,
    patience: float = PATIENCE,
) -> Outcome[State, Event]:
    """Execute a command, built for each try by `command`, for up to `patience` seconds.

    Raises the errors of the decider (Refused: the attempt is over), and Unavailable after `patience` seconds.
    """
    until = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await commands.execute(decider, id_, command(), context)
        except (Unavailable, Conflict) as error:
            if asyncio.get_running_loop().time() > until:
                raise
            _log.warning("report repeated", id=id_, error=str(error))
            await asyncio.sleep(PAUSE)


@attrs.frozen(kw_only=True)
class Attempt(ABC, Generic[S, R]):
    """An attempt under way: `state` as it began, at that sequence of the log. Kinds of jobs differ in work and commands."""

    decider: ClassVar[Decider[Any, Any, Any]]
    has_log: ClassVar[bool]

    work: Work
    session: str
    commands: Commands
    context: Context
    job: Job
    state: S
    sequence: int
    recording: Recording
    stages: Stages

    @staticmethod
    @abstractmethod
    def start(worker: str, session: str) -> Any:
        """Return the command that begins an attempt."""

    @abstractmethod
    async def _result(self) -> R:
        """Do the work. Raises WorkFailed."""

    @abstractmethod
    def finish(self, result: R, log: AttemptLog | None) -> Any:
        """Return the command that reports the result."""

    @abstractmethod
    def fail(self, reason: str, retry_at: datetime, log: AttemptLog | None, *, permanent: bool) -> Any:
        """Return the command that reports a failure."""

    async def ended(self, after: S) -> None:
        """Keep the log of an attempt that a user or the control plane has ended; `after` is the state since then."""

    async def report(self, command: Callable[[], Any], *, patience: float = PATIENCE) -> Outcome[S, Any]:
        """Report on the attempt, as the function of this name."""
        return await report(self.commands, self.decider, self.state.id, command, self.context, patience=patience)

    async def run(self, log: EventLog) -> R:
        """Do the work while the attempt lasts, and return its result.

        Raises AttemptOver if the attempt ends, after the work was cancelled and has cleaned up. Raises all errors of the work.
        """

        async def watch() -> S:
            async for commits in log.follow(after=self.sequence, aggregate=self.decider.aggregate(self.state.id)):
                if commits[-1].state.lease != self.state.lease:
                    return cast("S", commits[-1].state)
            raise RuntimeError("following a log has no end")

        working = asyncio.ensure_future(self._result())
        watching: asyncio.Task[S] | None = None
        try:
            async with self.job.hold():
                await asyncio.wait([working], timeout=UNWATCHED)
                if not working.done():
                    watching = asyncio.create_task(watch())
                    await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
            if watching is not None and not working.done():
                raise AttemptOver(watching.result())
            return working.result()
        finally:
            running = [working] if watching is None else [working, watching]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


class DiscoveryAttempt(Attempt[Repo, Discovered]):
    """An attempt to find the projects of a repository. It reports its end only."""

    decider = REPO
    has_log = False

    @staticmethod
    def start(worker: str, session: str) -> StartDiscovery:
        return StartDiscovery(worker=worker, session=session, at=now())

    async def _result(self) -> Discovered:
        return await self.work.discover(self.state)

    def finish(self, result: Discovered, _: AttemptLog | None) -> FinishDiscovery:
        return FinishDiscovery(
            attempt=self.state.attempt,
            session=self.session,
            commit_sha=result.commit_sha,
            default_ref=result.default_ref,
            projects=result.projects,
            at=now(),
        )

    def fail(self, reason: str, retry_at: datetime, _: AttemptLog | None, *, permanent: bool) -> FailDiscovery:
        return FailDiscovery(
            attempt=self.state.attempt,
            session=self.session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
        )


class ScanAttempt(Attempt[Task, Analysis]):
    """An attempt at a scan. It reports its stages, its progress and its end, and has a log."""

    decider = TASK
    has_log = True

    @staticmethod
    def start(worker: str, session: str) -> StartTask:
        return StartTask(worker=worker, session=session, at=now())

    async def _result(self) -> Analysis:
        return await self.work.scan(self.state, self._on_stage, self.recording.line)

    async def _on_stage(self, stage: str, progress: Progress | ResolvedRef | None = None) -> None:
        attempt, session = self.state.attempt, self.session
        if isinstance(progress, ResolvedRef):
            ref, commit_sha = progress.ref, progress.commit_sha
            await self.report(lambda: ResolveCommit(attempt=attempt, session=session, ref=ref, commit_sha=commit_sha, at=now()))
        elif progress is not None:
            reached = ReportProgress(attempt=attempt, session=session, progress=progress, at=now())
            await self.report(lambda: reached, patience=0.0)
        else:
            self.recording.mark(stage)
            self.stages.enter(stage)
            await self.report(lambda: ReachStage(attempt=attempt, session=session, stage=stage, at=now()))

    def finish(self, result: Analysis, log: AttemptLog | None) -> CompleteTask:
        return CompleteTask(attempt=self.state.attempt, session=self.session, analysis=result, at=now(), log=log)

    def fail(self, reason: str, retry_at: datetime, log: AttemptLog | None, *, permanent: bool) -> FailTask:
        return FailTask(
            attempt=self.state.attempt,
            session=self.session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
            log=log,
        )

    async def ended(self, after: Task) -> None:
        """Keep the log, unless the task is deleted."""
        if after.deleted:
            return
        self.recording.mark(f"ended from outside: {after.reason}" if after.reason else "ended from outside")
        stored = await self.recording.stored()
        if stored is None:
            return
        try:
            await self.report(lambda: StoreLog(attempt=self.state.attempt, log=stored, at=now()), patience=LATE)
        except (Refused, NotFound, EventLogError) as error:
            _log.info("log of an attempt is not kept", id=self.state.id, attempt=self.state.attempt, reason=str(error))
