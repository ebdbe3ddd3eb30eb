"""What can happen to a task."""

from __future__ import annotations

from datetime import datetime

import attrs

from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.config import ProjectConfig
from gctd.domain.registry import REGISTRY

STAGES = ("clone", "modules", "test", "analyse", "store")
"""The stages of an attempt, in the order in which it enters them."""


@attrs.frozen(kw_only=True)
class AttemptLog:
    """Where the log of an attempt is kept: a body in the blob store, by its SHA-256 and its size in bytes.

    `cut` bytes are left out of it behind its first `cut_at` bytes; 0: it is whole.
    """

    digest: str
    size: int
    cut: int
    cut_at: int


@REGISTRY.event("TaskQueued", version=3)
@attrs.frozen(kw_only=True)
class TaskQueued:
    """A project is to be analysed, with the settings that hold for it now.

    `commit_sha` where it is bound to a commit (None: to whatever the ref leads to when a worker takes it up); `rescores` where
    the profile of an earlier test run is scored again and no test is run.
    """

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


REGISTRY.upcast("TaskQueued", 1)(lambda fields: fields)
REGISTRY.upcast("TaskQueued", 2)(lambda fields: fields)


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


@REGISTRY.event("TaskLogStored")
@attrs.frozen(kw_only=True)
class TaskLogStored:
    """The log of an attempt is kept: in the commit that ends the attempt, or after it where that came from outside."""

    attempt: int
    log: AttemptLog
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


@REGISTRY.event("TaskCompleted", version=2)
@attrs.frozen(kw_only=True)
class TaskCompleted:
    """An attempt succeeded."""

    attempt: int
    analysis: Analysis
    at: datetime


REGISTRY.upcast("TaskCompleted", 1)(lambda fields: fields)


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


@REGISTRY.event("TaskRetried")
@attrs.frozen(kw_only=True)
class TaskRetried:
    """A user asked for more attempts at a task that had failed or expired: up to the attempt `max_attempts`."""

    max_attempts: int
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
    | TaskLogStored
    | TaskAttemptFailed
    | TaskAttemptLost
    | TaskCompleted
    | TaskFailed
    | TaskExpired
    | TaskCancelled
    | TaskRetried
    | TaskDeleted
    | TaskSeen
    | TaskHidden
)
