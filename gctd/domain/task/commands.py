"""Commands of a task, and the events that they cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import fence
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task.events import (
    STAGES,
    AttemptLog,
    Progress,
    TaskAttemptFailed,
    TaskAttemptLost,
    TaskBlocked,
    TaskCancelled,
    TaskCompleted,
    TaskDeleted,
    TaskDropped,
    TaskEvent,
    TaskExpired,
    TaskFailed,
    TaskHidden,
    TaskLogStored,
    TaskProgressed,
    TaskQueued,
    TaskRetried,
    TaskSeen,
    TaskStageReached,
    TaskStarted,
    TaskUnblocked,
)
from gctd.domain.task.state import Task, TaskStatus
from gctd.domain.upload import UploadedProfile

MOST_ATTEMPTS = 100
"""Limit of attempts: a task that reached it cannot be retried, because its state holds all attempts."""


@attrs.frozen(kw_only=True)
class QueueTask:
    """Analyse a project; `commit_sha`, `rescores`, `baseline`, `reuse_since`, `go_version` and `uploads` as in TaskQueued."""

    id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    engine: str
    max_attempts: int
    config: ProjectConfig
    at: datetime
    commit_sha: str | None = None
    rescores: Measurement | None = None
    baseline: bool = False
    reuse_since: datetime | None = None
    uploads: tuple[UploadedProfile, ...] = ()
    go_version: str = ""


@attrs.frozen(kw_only=True)
class BlockTask:
    """No present worker can run the task, or a worker that cannot run it was given its job; the reason names the capability."""

    reason: str
    at: datetime


@attrs.frozen(kw_only=True)
class UnblockTask:
    """A worker that can run the task is present again."""

    at: datetime


@attrs.frozen(kw_only=True)
class StartTask:
    """A worker takes the task up."""

    worker: str
    session: str
    at: datetime


@attrs.frozen(kw_only=True)
class ReachStage:
    """The worker of an attempt enters a stage."""

    attempt: int
    session: str
    stage: str
    at: datetime


@attrs.frozen(kw_only=True)
class ReportProgress:
    """The worker of an attempt reports how far its tests are."""

    attempt: int
    session: str
    progress: Progress
    at: datetime


@attrs.frozen(kw_only=True)
class FailTask:
    """The worker of an attempt reports that it failed; `permanent`: another attempt would end the same."""

    attempt: int
    session: str
    reason: str
    permanent: bool
    retry_at: datetime
    at: datetime
    log: AttemptLog | None = None


@attrs.frozen(kw_only=True)
class LoseTask:
    """The worker of this attempt is gone."""

    attempt: int
    reason: str
    at: datetime


@attrs.frozen(kw_only=True)
class CompleteTask:
    """The worker of an attempt reports its result."""

    attempt: int
    session: str
    analysis: Analysis
    at: datetime
    log: AttemptLog | None = None


@attrs.frozen(kw_only=True)
class StoreLog:
    """The worker of an attempt that was ended from outside has stored its log."""

    attempt: int
    log: AttemptLog
    at: datetime


@attrs.frozen(kw_only=True)
class ExpireTask:
    """No worker took the task in time after its wait at this attempt began."""

    attempt: int
    reason: str
    at: datetime


@attrs.frozen(kw_only=True)
class CancelTask:
    """End the task, whether it waits or runs."""

    at: datetime


@attrs.frozen(kw_only=True)
class RetryTask:
    """Take up a task again that failed or expired, for at most `attempts` more attempts."""

    attempts: int
    at: datetime


@attrs.frozen(kw_only=True)
class DeleteTask:
    """Remove the task. A task without a result is ended first."""

    at: datetime


@attrs.frozen(kw_only=True)
class MarkTask:
    """Mark the task as seen, or hide it."""

    hide: bool
    at: datetime


@attrs.frozen(kw_only=True)
class DropTask:
    """Remove the task and its analysis with their repository; end the task first if it has no result yet."""

    at: datetime


TaskCommand = (
    QueueTask
    | BlockTask
    | UnblockTask
    | StartTask
    | ReachStage
    | ReportProgress
    | FailTask
    | LoseTask
    | CompleteTask
    | StoreLog
    | ExpireTask
    | CancelTask
    | RetryTask
    | DeleteTask
    | MarkTask
    | DropTask
)


def decide(command: TaskCommand, state: Task | None) -> Sequence[TaskEvent]:
    """Return the events that a command causes. Raises Refused, NotFound."""
    if isinstance(command, QueueTask):
        return _queue(command, state)
    if isinstance(command, DropTask):
        return _drop(command, state)
    if state is None or state.deleted:
        raise NotFound("no such task")
    match command:
        case BlockTask():
            known = state.blocked and state.reason == command.reason
            return [TaskBlocked(reason=command.reason, at=command.at)] if state.status.waiting and not known else []
        case UnblockTask():
            return [TaskUnblocked(at=command.at)] if state.status.waiting and state.blocked else []
        case StartTask():
            return _start(command, state)
        case ReachStage():
            return _stage(command, state)
        case ReportProgress():
            _fence(state, command.attempt, command.session)
            if not state.attempts[-1].stages:
                raise Refused(f"{state.id}: attempt {command.attempt} has not entered a stage")
            return [TaskProgressed(attempt=command.attempt, progress=command.progress, at=command.at)]
        case FailTask():
            return _fail(command, state)
        case LoseTask():
            return _lose(command, state)
        case CompleteTask():
            _fence(state, command.attempt, command.session)
            return [*_logged(command), TaskCompleted(attempt=command.attempt, analysis=command.analysis, at=command.at)]
        case StoreLog():
            return _store_log(command, state)
        case ExpireTask():
            due = state.status.waiting and state.attempt == command.attempt
            return [TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)] if due else []
        case CancelTask():
            if state.status.terminal:
                raise Refused(f"{state.id} has ended already: it is {state.status}")
            return [TaskCancelled(attempt=state.attempt, at=command.at)]
        case RetryTask():
            if state.status not in {TaskStatus.FAILED, TaskStatus.EXPIRED}:
                raise Refused(f"{state.id} is {state.status}: only a task that failed or expired can be retried")
            if state.attempt >= MOST_ATTEMPTS:
                raise Refused(f"{state.id} has had {state.attempt} attempts: schedule a new task instead")
            return [TaskRetried(max_attempts=state.attempt + command.attempts, at=command.at)]
        case DeleteTask():
            return [*_cancelled(state, command.at), TaskDeleted(at=command.at)]
        case MarkTask(hide=True):
            return [] if state.hidden else [TaskHidden(at=command.at)]
        case MarkTask():
            return [] if state.seen else [TaskSeen(at=command.at)]


def _drop(command: DropTask, state: Task | None) -> Sequence[TaskEvent]:
    if state is None:
        raise NotFound("no such task")
    return [] if state.dropped else [*_cancelled(state, command.at), TaskDropped(at=command.at)]


def _cancelled(state: Task, at: datetime) -> Sequence[TaskEvent]:
    """Return the event that ends a task, if it has not ended."""
    return [] if state.status.terminal or state.deleted else [TaskCancelled(attempt=state.attempt, at=at)]


def _queue(command: QueueTask, state: Task | None) -> Sequence[TaskEvent]:
    if state is not None:
        raise Refused(f"{command.id} exists already")
    return [
        TaskQueued(
            id=command.id,
            repo_id=command.repo_id,
            repo_url=command.repo_url,
            project=command.project,
            ref=command.ref,
            engine=command.engine,
            max_attempts=command.max_attempts,
            config=command.config,
            at=command.at,
            commit_sha=command.commit_sha,
            rescores=command.rescores,
            baseline=command.baseline,
            reuse_since=command.reuse_since,
            uploads=command.uploads,
            go_version=command.go_version,
        )
    ]


def _start(command: StartTask, state: Task) -> Sequence[TaskEvent]:
    if not state.status.waiting:
        raise Refused(f"{state.id} is {state.status}")
    if state.retry_at is not None and command.at < state.retry_at:
        raise Refused(f"{state.id}: the next attempt is not before {state.retry_at.isoformat()}")
    return [TaskStarted(attempt=state.attempt + 1, worker=command.worker, session=command.session, at=command.at)]


def _stage(command: ReachStage, state: Task) -> Sequence[TaskEvent]:
    _fence(state, command.attempt, command.session)
    if command.stage not in STAGES:
        raise Refused(f"no stage is called {command.stage!r}; there are {', '.join(STAGES)}")
    return [TaskStageReached(attempt=command.attempt, stage=command.stage, at=command.at)]


def _fail(command: FailTask, state: Task) -> Sequence[TaskEvent]:
    _fence(state, command.attempt, command.session)
    if command.permanent or state.attempt >= state.max_attempts:
        return [*_logged(command), TaskFailed(attempt=state.attempt, reason=command.reason, at=command.at)]
    failed = TaskAttemptFailed(attempt=state.attempt, reason=command.reason, retry_at=command.retry_at, at=command.at)
    return [*_logged(command), failed]


def _lose(command: LoseTask, state: Task) -> Sequence[TaskEvent]:
    if state.status is not TaskStatus.RUNNING or state.attempt != command.attempt:
        return []
    if state.attempt >= state.max_attempts:
        return [TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)]
    return [TaskAttemptLost(attempt=state.attempt, reason=command.reason, at=command.at)]


def _logged(command: FailTask | CompleteTask) -> Sequence[TaskEvent]:
    if command.log is None:
        return []
    return [TaskLogStored(attempt=command.attempt, log=command.log, at=command.at)]


def _store_log(command: StoreLog, state: Task) -> Sequence[TaskEvent]:
    under_way = state.status is TaskStatus.RUNNING and state.attempt == command.attempt
    if under_way or not 0 < command.attempt <= state.attempt:
        raise Refused(f"{state.id}: attempt {command.attempt} has not ended")
    return [TaskLogStored(attempt=command.attempt, log=command.log, at=command.at)]


def _fence(state: Task, attempt: int, session: str) -> None:
    fence(state.id, state.lease, state.attempt, by_attempt=attempt, by_session=session)
