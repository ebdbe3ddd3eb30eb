"""The aggregate of a task: one analysis of one project, tried at most three times, with one result at most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import attrs

from eventlog import Decider
from gctd.domain.analysis import Analysis
from gctd.domain.config import ProjectConfig
from gctd.domain.errors import NotFound, Refused
from gctd.domain.lease import Lease, fence
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.task"


class TaskStatus(StrEnum):
    """The states of a task (specification, section 3).

    `queued`: waits for its first attempt; `pending`: an attempt ended without a result and another follows; `failed`: the
    last attempt failed, or the task was cancelled; `expired`: no worker took it up, or saw it through, in time.
    """

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"

    @property
    def waiting(self) -> bool:
        """Whether an attempt may be started."""
        return self in {TaskStatus.QUEUED, TaskStatus.PENDING}

    @property
    def terminal(self) -> bool:
        """Whether nothing more will happen to it."""
        return self in {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.EXPIRED}


# Events


@REGISTRY.event("TaskQueued")
@attrs.frozen(kw_only=True)
class TaskQueued:
    """A project is to be analysed, with the settings that hold for it now."""

    id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    engine: str
    max_attempts: int
    config: ProjectConfig
    at: datetime


@REGISTRY.event("TaskStarted")
@attrs.frozen(kw_only=True)
class TaskStarted:
    """A worker began an attempt: 1 for the first."""

    attempt: int
    worker: str
    session: str
    at: datetime


@REGISTRY.event("TaskStageReached")
@attrs.frozen(kw_only=True)
class TaskStageReached:
    """The attempt under way entered a stage: clone, modules, test, analyse or store."""

    attempt: int
    stage: str
    at: datetime


@REGISTRY.event("TaskAttemptFailed")
@attrs.frozen(kw_only=True)
class TaskAttemptFailed:
    """An attempt failed; another follows, not before `retry_at`."""

    attempt: int
    reason: str
    retry_at: datetime
    at: datetime


@REGISTRY.event("TaskAttemptLost")
@attrs.frozen(kw_only=True)
class TaskAttemptLost:
    """The worker of an attempt is gone; another attempt follows at once."""

    attempt: int
    reason: str
    at: datetime


@REGISTRY.event("TaskCompleted")
@attrs.frozen(kw_only=True)
class TaskCompleted:
    """An attempt succeeded."""

    attempt: int
    analysis: Analysis
    at: datetime


@REGISTRY.event("TaskFailed")
@attrs.frozen(kw_only=True)
class TaskFailed:
    """The last attempt failed, or one failed in a way that another cannot mend."""

    attempt: int
    reason: str
    at: datetime


@REGISTRY.event("TaskExpired")
@attrs.frozen(kw_only=True)
class TaskExpired:
    """Nobody took the task up in time, or the worker of its last attempt was lost."""

    attempt: int
    reason: str
    at: datetime


@REGISTRY.event("TaskCancelled")
@attrs.frozen(kw_only=True)
class TaskCancelled:
    """A user ended the task before it had a result."""

    attempt: int
    at: datetime


@REGISTRY.event("TaskDeleted")
@attrs.frozen(kw_only=True)
class TaskDeleted:
    """A user removed the task: it is in no list any more."""

    at: datetime


@REGISTRY.event("TaskSeen")
@attrs.frozen(kw_only=True)
class TaskSeen:
    """A user has taken note of the task."""

    at: datetime


@REGISTRY.event("TaskHidden")
@attrs.frozen(kw_only=True)
class TaskHidden:
    """A user cleared the task from the lists."""

    at: datetime


TaskEvent = (
    TaskQueued
    | TaskStarted
    | TaskStageReached
    | TaskAttemptFailed
    | TaskAttemptLost
    | TaskCompleted
    | TaskFailed
    | TaskExpired
    | TaskCancelled
    | TaskDeleted
    | TaskSeen
    | TaskHidden
)


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Task:
    """A task. `attempt` is 0 until a worker starts one; `waiting_since` is when it last began to wait for a worker."""

    id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    status: TaskStatus
    engine: str
    max_attempts: int
    config: ProjectConfig
    created_at: datetime
    updated_at: datetime
    waiting_since: datetime
    attempt: int = 0
    lease: Lease | None = None
    worker: str = ""
    stage: str = ""
    reason: str = ""
    retry_at: datetime | None = None
    seen: bool = False
    hidden: bool = False
    deleted: bool = False
    analysis: Analysis | None = None


def evolve(state: Task | None, event: TaskEvent) -> Task:
    """The task after an event."""
    if isinstance(event, TaskQueued):
        return Task(
            id=event.id,
            repo_id=event.repo_id,
            repo_url=event.repo_url,
            project=event.project,
            ref=event.ref,
            status=TaskStatus.QUEUED,
            engine=event.engine,
            max_attempts=event.max_attempts,
            config=event.config,
            created_at=event.at,
            updated_at=event.at,
            waiting_since=event.at,
        )
    assert state is not None, "a task begins with TaskQueued"
    task = attrs.evolve(state, updated_at=event.at)
    match event:
        case TaskStarted():
            lease = Lease(worker=event.worker, session=event.session, since=event.at)
            return attrs.evolve(
                task,
                status=TaskStatus.RUNNING,
                attempt=event.attempt,
                lease=lease,
                worker=event.worker,
                stage="",
                reason="",
                retry_at=None,
            )
        case TaskStageReached():
            return attrs.evolve(task, stage=event.stage)
        case TaskAttemptFailed():
            return _waits(task, event.reason, event.retry_at, event.at)
        case TaskAttemptLost():
            return _waits(task, event.reason, None, event.at)
        case TaskCompleted():
            return attrs.evolve(task, status=TaskStatus.COMPLETED, lease=None, stage="", analysis=event.analysis)
        case TaskFailed():
            return attrs.evolve(task, status=TaskStatus.FAILED, lease=None, reason=event.reason)
        case TaskExpired():
            return attrs.evolve(task, status=TaskStatus.EXPIRED, lease=None, reason=event.reason, retry_at=None)
        case TaskCancelled():
            return attrs.evolve(task, status=TaskStatus.FAILED, lease=None, reason="cancelled", retry_at=None)
        case TaskDeleted():
            return attrs.evolve(task, deleted=True)
        case TaskSeen():
            return attrs.evolve(task, seen=True)
        case TaskHidden():
            return attrs.evolve(task, hidden=True)


def _waits(task: Task, reason: str, retry_at: datetime | None, since: datetime) -> Task:
    return attrs.evolve(
        task, status=TaskStatus.PENDING, lease=None, stage="", reason=reason, retry_at=retry_at, waiting_since=since
    )


# Commands


@attrs.frozen(kw_only=True)
class QueueTask:
    """Analyse a project."""

    id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    engine: str
    max_attempts: int
    config: ProjectConfig
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
class FailTask:
    """The worker of an attempt reports that it failed; `permanent`: another attempt would end the same."""

    attempt: int
    session: str
    reason: str
    permanent: bool
    retry_at: datetime
    at: datetime


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


@attrs.frozen(kw_only=True)
class ExpireTask:
    """Nobody took the task up in time, since it began to wait at this attempt."""

    attempt: int
    reason: str
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


TaskCommand = QueueTask | StartTask | ReachStage | FailTask | LoseTask | CompleteTask | ExpireTask | DeleteTask | MarkTask


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
            _fence(state, command.attempt, command.session)
            return [TaskStageReached(attempt=command.attempt, stage=command.stage, at=command.at)]
        case FailTask():
            return _fail(command, state)
        case LoseTask():
            return _lose(command, state)
        case CompleteTask():
            _fence(state, command.attempt, command.session)
            return [TaskCompleted(attempt=command.attempt, analysis=command.analysis, at=command.at)]
        case ExpireTask():
            due = state.status.waiting and state.attempt == command.attempt
            return [TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)] if due else []
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
        )
    ]


def _start(command: StartTask, state: Task) -> Sequence[TaskEvent]:
    if not state.status.waiting:
        raise Refused(f"{state.id} is {state.status}")
    if state.retry_at is not None and command.at < state.retry_at:
        raise Refused(f"{state.id}: the next attempt is not before {state.retry_at.isoformat()}")
    return [TaskStarted(attempt=state.attempt + 1, worker=command.worker, session=command.session, at=command.at)]


def _fail(command: FailTask, state: Task) -> Sequence[TaskEvent]:
    _fence(state, command.attempt, command.session)
    if command.permanent or state.attempt >= state.max_attempts:
        return [TaskFailed(attempt=state.attempt, reason=command.reason, at=command.at)]
    return [TaskAttemptFailed(attempt=state.attempt, reason=command.reason, retry_at=command.retry_at, at=command.at)]


def _lose(command: LoseTask, state: Task) -> Sequence[TaskEvent]:
    if state.status is not TaskStatus.RUNNING or state.attempt != command.attempt:
        return []
    if state.attempt >= state.max_attempts:
        return [TaskExpired(attempt=state.attempt, reason=command.reason, at=command.at)]
    return [TaskAttemptLost(attempt=state.attempt, reason=command.reason, at=command.at)]


def _fence(state: Task, attempt: int, session: str) -> None:
    fence(state.id, state.lease, state.attempt, by_attempt=attempt, by_session=session)


TASK: Decider[Task, TaskCommand, TaskEvent] = Decider(CATEGORY, decide, evolve)
