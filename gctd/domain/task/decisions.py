"""Decisions on the commands of a task: the events that they cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import fence
from gctd.domain.task.commands import (
    BlockTask,
    CancelTask,
    CompleteTask,
    DeleteTask,
    DropTask,
    ExpireTask,
    FailTask,
    LoseTask,
    MarkTask,
    QueueTask,
    ReachStage,
    ReportProgress,
    RetryTask,
    StartTask,
    StoreLog,
    TaskCommand,
    UnblockTask,
)
from gctd.domain.task.events import (
    STAGES,
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

MOST_ATTEMPTS = 100
"""Limit of attempts: a task that reached it cannot be retried, because its state holds all attempts."""


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
