"""The state of a task, and its changes by events."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.capabilities import Needs
from gctd.domain.lease import Lease
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task import events
from gctd.domain.task.attempts import Attempt, attempts_after
from gctd.domain.upload import UploadedProfile

CATEGORY = "gctd.task"


class TaskStatus(StrEnum):
    """The states of a task (docs/explanation/tracker.md).

    `queued`: the task waits for a worker since it was scheduled or retried. `pending`: an attempt ended without a result, and
    another follows. `failed`: the last attempt failed, or the task was cancelled. `expired`: no worker took the task in time, or
    the last worker was lost.
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


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Task:
    """A task. `attempt` is 0 until a worker starts one; `waiting_since` is when it last began to wait for a worker.

    `dropped`: its repository was removed, and `deleted` is set with it. `blocked`: no present worker can run it, and `reason`
    names the missing capability. `commit_sha` is the commit that the task was queued for. `resolved` is the commit of the ref
    that an attempt found. The next attempts analyse the same commit, unless a user retries the task.
    """

    id: str
    repo_id: str
    repo_url: str
    clone_url: str
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
    commit_sha: str | None = None
    rescores: Measurement | None = None
    attempts: tuple[Attempt, ...] = ()
    baseline: bool = False
    dropped: bool = False
    reuse_since: datetime | None = None
    uploads: tuple[UploadedProfile, ...] = ()
    go_version: str = ""
    blocked: bool = False
    resolved: str | None = None

    @property
    def commit(self) -> str | None:
        """The commit of the task, None until an attempt found it."""
        return self.commit_sha or self.resolved

    @property
    def needs(self) -> Needs:
        """The capabilities that a worker must have to run it. Scoring a stored profile needs no Go."""
        return Needs(engine=self.engine, go="" if self.without_tests else self.go_version)

    @property
    def without_tests(self) -> bool:
        """Whether existing profiles are scored."""
        return self.rescores is not None or bool(self.uploads)


def evolve(state: Task | None, event: events.TaskEvent) -> Task:
    """The task after an event."""
    if isinstance(event, events.TaskQueued):
        return Task(
            id=event.id,
            repo_id=event.repo_id,
            repo_url=event.repo_url,
            clone_url=event.clone_url,
            project=event.project,
            ref=event.ref,
            status=TaskStatus.QUEUED,
            engine=event.engine,
            max_attempts=event.max_attempts,
            config=event.config,
            created_at=event.at,
            updated_at=event.at,
            waiting_since=event.at,
            commit_sha=event.commit_sha,
            rescores=event.rescores,
            baseline=event.baseline,
            reuse_since=event.reuse_since,
            uploads=event.uploads,
            go_version=event.go_version,
        )
    assert state is not None, "a task begins with TaskQueued"
    task = attrs.evolve(state, updated_at=event.at, attempts=attempts_after(state.attempts, event))
    match event:
        case events.TaskBlocked():
            return attrs.evolve(task, blocked=True, reason=event.reason)
        case events.TaskUnblocked():
            return attrs.evolve(task, blocked=False, reason="")
        case events.TaskStarted():
            lease = Lease(worker=event.worker, session=event.session, since=event.at)
            return attrs.evolve(
                task,
                status=TaskStatus.RUNNING,
                attempt=event.attempt,
                lease=lease,
                worker=event.worker,
                stage="",
                reason="",
                blocked=False,
                retry_at=None,
            )
        case events.TaskStageReached():
            return attrs.evolve(task, stage=event.stage)
        case events.TaskCommitResolved():
            return attrs.evolve(task, ref=event.ref, resolved=event.commit_sha)
        case events.TaskLogStored() | events.TaskProgressed():
            return task
        case events.TaskAttemptFailed():
            return _waits(task, event.reason, event.retry_at, event.at)
        case events.TaskAttemptLost():
            return _waits(task, event.reason, None, event.at)
        case events.TaskCompleted():
            found = event.analysis.commit_sha
            return attrs.evolve(task, status=TaskStatus.COMPLETED, lease=None, stage="", analysis=event.analysis, resolved=found)
        case events.TaskFailed():
            return attrs.evolve(task, status=TaskStatus.FAILED, lease=None, reason=event.reason)
        case events.TaskExpired():
            return attrs.evolve(task, status=TaskStatus.EXPIRED, lease=None, blocked=False, reason=event.reason, retry_at=None)
        case events.TaskCancelled():
            return attrs.evolve(task, status=TaskStatus.FAILED, lease=None, blocked=False, reason="cancelled", retry_at=None)
        case events.TaskRetried():
            return attrs.evolve(
                task,
                status=TaskStatus.QUEUED,
                max_attempts=event.max_attempts,
                resolved=None,
                stage="",
                reason="",
                waiting_since=event.at,
                seen=False,
                hidden=False,
            )
        case events.TaskDeleted():
            return attrs.evolve(task, deleted=True)
        case events.TaskSeen():
            return attrs.evolve(task, seen=True)
        case events.TaskHidden():
            return attrs.evolve(task, hidden=True)
        case events.TaskDropped():
            return attrs.evolve(task, deleted=True, dropped=True)


def _waits(task: Task, reason: str, retry_at: datetime | None, since: datetime) -> Task:
    return attrs.evolve(
        task, status=TaskStatus.PENDING, lease=None, stage="", reason=reason, retry_at=retry_at, waiting_since=since
    )
