"""Decisions on the commands of a task: the events that they cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import fence
from gctd.domain.task import commands, events
from gctd.domain.task.state import Task, TaskStatus

MOST_ATTEMPTS = 100
"""Limit of attempts: a task that reached it cannot be retried, because its state holds all attempts."""


def decide(command: commands.TaskCommand, state: Task | None) -> Sequence[events.TaskEvent]:
    """Return the events that a command causes. Raises Refused, NotFound."""
    if isinstance(command, commands.QueueTask):
        if state is not None:
            raise Refused(f"{command.queued.id} exists already")
        return [command.queued]
    if isinstance(command, commands.DropTask):
        return _drop(command, state)
    if state is None or state.deleted:
        raise NotFound("no such task")
    match command:
        case commands.BlockTask():
            known = state.blocked and state.reason == command.reason
            return [events.TaskBlocked(reason=command.reason, at=command.at)] if state.status.waiting and not known else []
        case commands.UnblockTask():
            return [events.TaskUnblocked(at=command.at)] if state.status.waiting and state.blocked else []
        case commands.StartTask():
            return _start(command, state)
        case commands.ReachStage():
            return _stage(command, state)
        case commands.ResolveCommit():
            _fence(state, command.attempt, command.session)
            if command.commit_sha == state.commit:
                return []
            return [
                events.TaskCommitResolved(attempt=command.attempt, ref=command.ref, commit_sha=command.commit_sha, at=command.at)
            ]
        case commands.ReportProgress():
            _fence(state, command.attempt, command.session)
            if not state.attempts[-1].stages:
                raise Refused(f"{state.id}: attempt {command.attempt} has not entered a stage")
            return [events.TaskProgressed(attempt=command.attempt, progress=command.progress, at=command.at)]
        case commands.FailTask():
            return _fail(command, state)
        case commands.LoseTask():
            return _lose(command, state)
        case commands.CompleteTask():
            _fence(state, command.attempt, command.session)
            return [*_logged(command), events.TaskCompleted(attempt=command.attempt, analysis=command.analysis, at=command.at)]
        case commands.StoreLog():
            return _store_log(command, state)
        case commands.ExpireTask():
            due = state.status.waiting and state.attempt == command.attempt
            return [events.TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)] if due else []
        case commands.CancelTask():
            if state.status.terminal:
                raise Refused(f"{state.id} has ended already: it is {state.status}")
            return [events.TaskCancelled(attempt=state.attempt, at=command.at)]
        case commands.RetryTask():
            if state.status not in {TaskStatus.FAILED, TaskStatus.EXPIRED}:
                raise Refused(f"{state.id} is {state.status}: only a task that failed or expired can be retried")
            if state.attempt >= MOST_ATTEMPTS:
                raise Refused(f"{state.id} has had {state.attempt} attempts: schedule a new task instead")
            return [events.TaskRetried(max_attempts=state.attempt + command.attempts, at=command.at)]
        case commands.DeleteTask():
            return [*_cancelled(state, command.at), events.TaskDeleted(at=command.at)]
        case commands.MarkTask(hide=True):
            # A task that waits or runs may fail later, and a hidden failure would be in no list.
            return [events.TaskHidden(at=command.at)] if state.status.terminal and not state.hidden else []
        case commands.MarkTask():
            return [] if state.seen else [events.TaskSeen(at=command.at)]


def _drop(command: commands.DropTask, state: Task | None) -> Sequence[events.TaskEvent]:
    if state is None:
        raise NotFound("no such task")
    return [] if state.dropped else [*_cancelled(state, command.at), events.TaskDropped(at=command.at)]


def _cancelled(state: Task, at: datetime) -> Sequence[events.TaskEvent]:
    """Return the event that ends a task, if it has not ended."""
    return [] if state.status.terminal or state.deleted else [events.TaskCancelled(attempt=state.attempt, at=at)]


def _start(command: commands.StartTask, state: Task) -> Sequence[events.TaskEvent]:
    if not state.status.waiting:
        raise Refused(f"{state.id} is {state.status}")
    if state.retry_at is not None and command.at < state.retry_at:
        raise Refused(f"{state.id}: the next attempt is not before {state.retry_at.isoformat()}")
    return [events.TaskStarted(attempt=state.attempt + 1, worker=command.worker, session=command.session, at=command.at)]


def _stage(command: commands.ReachStage, state: Task) -> Sequence[events.TaskEvent]:
    _fence(state, command.attempt, command.session)
    if command.stage not in events.STAGES:
        raise Refused(f"no stage is called {command.stage!r}; there are {', '.join(events.STAGES)}")
    return [events.TaskStageReached(attempt=command.attempt, stage=command.stage, at=command.at)]


def _fail(command: commands.FailTask, state: Task) -> Sequence[events.TaskEvent]:
    _fence(state, command.attempt, command.session)
    if command.permanent or state.attempt >= state.max_attempts:
        return [*_logged(command), events.TaskFailed(attempt=state.attempt, reason=command.reason, at=command.at)]
    failed = events.TaskAttemptFailed(attempt=state.attempt, reason=command.reason, retry_at=command.retry_at, at=command.at)
    return [*_logged(command), failed]


def _lose(command: commands.LoseTask, state: Task) -> Sequence[events.TaskEvent]:
    if state.status is not TaskStatus.RUNNING or state.attempt != command.attempt:
        return []
    if state.attempt >= state.max_attempts:
        return [events.TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)]
    return [events.TaskAttemptLost(attempt=state.attempt, reason=command.reason, at=command.at)]


def _logged(command: commands.FailTask | commands.CompleteTask) -> Sequence[events.TaskEvent]:
    if command.log is None:
        return []
    return [events.TaskLogStored(attempt=command.attempt, log=command.log, at=command.at)]


def _store_log(command: commands.StoreLog, state: Task) -> Sequence[events.TaskEvent]:
    under_way = state.status is TaskStatus.RUNNING and state.attempt == command.attempt
    if under_way or not 0 < command.attempt <= state.attempt:
        raise Refused(f"{state.id}: attempt {command.attempt} has not ended")
    return [events.TaskLogStored(attempt=command.attempt, log=command.log, at=command.at)]


def _fence(state: Task, attempt: int, session: str) -> None:
    fence(state.id, state.lease, state.attempt, by_attempt=attempt, by_session=session)
