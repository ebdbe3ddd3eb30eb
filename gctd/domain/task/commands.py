"""What may be asked of a task, and what it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.config import ProjectConfig
from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import fence
from gctd.domain.task.events import (
    STAGES,
    AttemptLog,
    TaskAttemptFailed,
    TaskAttemptLost,
    TaskCancelled,
    TaskCompleted,
    TaskDeleted,
    TaskEvent,
    TaskExpired,
    TaskFailed,
    TaskHidden,
    TaskLogStored,
    TaskQueued,
    TaskRetried,
    TaskSeen,
    TaskStageReached,
    TaskStarted,
)
from gctd.domain.task.state import Task, TaskStatus

MOST_ATTEMPTS = 100
"""A task that has had so many is not retried: its state holds them all."""


@attrs.frozen(kw_only=True)
class QueueTask:
    """Analyse a project; `commit_sha` and `rescores` as in TaskQueued."""

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
    """Nobody took the task up in time, since it began to wait at this attempt."""

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
    """Remove the task; end it first where it has no result yet."""

    at: datetime


@attrs.frozen(kw_only=True)
class MarkTask:
    """Mark the task as seen, or hide it."""

    hide: bool
    at: datetime


TaskCommand = (
    QueueTask
    | StartTask
    | ReachStage
    | FailTask
    | LoseTask
    | CompleteTask
    | StoreLog
    | ExpireTask
    | CancelTask
    | RetryTask
    | DeleteTask
    | MarkTask
)


def decide(command: TaskCommand, state: Task | None) -> Sequence[TaskEvent]:
    """The events that a command leads to. Raises Refused, NotFound."""
    if isinstance(command, QueueTask):
        return _queue(command, state)
    if state is None or state.deleted:
        raise NotFound("no such task")
    match command:
        case StartTask():
            return _start(command, state)
        case ReachStage():
            return _stage(command, state)
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
            ended = [] if state.status.terminal else [TaskCancelled(attempt=state.attempt, at=command.at)]
            return [*ended, TaskDeleted(at=command.at)]
        case MarkTask(hide=True):
            return [] if state.hidden else [TaskHidden(at=command.at)]
        case MarkTask():
            return [] if state.seen else [TaskSeen(at=command.at)]


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
