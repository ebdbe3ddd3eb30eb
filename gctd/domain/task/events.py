"""Events of a task."""

from __future__ import annotations

from datetime import datetime

import attrs

from gctd.domain.analysis import Analysis, Measurement
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.upload import UploadedProfile

STAGES = ("clone", "toolchain", "modules", "stdlib", "test", "analyse", "store")
"""The stages of an attempt, in the order in which it enters them. `toolchain` and `stdlib` are needed seldom."""


@attrs.frozen(kw_only=True)
class AttemptLog:
    """The stored log of an attempt: a body in the blob store, by its SHA-256 and its size in bytes.

    `cut` bytes are left out of it behind its first `cut_at` bytes; 0: it is complete.
    """

    digest: str
    size: int
    cut: int
    cut_at: int


@REGISTRY.event("TaskQueued")
@attrs.frozen(kw_only=True)
class TaskQueued:
    """The analysis of a project is requested, with the settings that apply to it now.

    `commit_sha`: the commit to analyse; None: the commit of the ref when a worker takes the task. `rescores`: the profile of this
    earlier test run is scored again, and no test is run. `baseline`: the analysis serves only as a base of comparisons.
    `reuse_since`: an analysis of the same commit, made in the same way since that time, is also the result of this task, and no
    test is run; None: the tests are run. `go_version` is the least version of Go that the project's go.mod asks for; empty:
    unknown, or not needed. `uploads`: these uploaded profiles are scored, and no test is run. `clone_url` is the address that git
    is given.
    """

    id: str
    repo_id: str
    repo_url: str
    clone_url: str
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


@REGISTRY.event("TaskBlocked")
@attrs.frozen(kw_only=True)
class TaskBlocked:
    """The task waits for a capability: the reason names it. Its attempts do not change."""

    reason: str
    at: datetime


@REGISTRY.event("TaskUnblocked")
@attrs.frozen(kw_only=True)
class TaskUnblocked:
    """A worker that can run the task is present: the task waits for a slot only."""

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
    """The attempt under way entered a stage: clone, toolchain, modules, stdlib, test, analyse or store."""

    attempt: int
    stage: str
    at: datetime


@REGISTRY.event("TaskCommitResolved")
@attrs.frozen(kw_only=True)
class TaskCommitResolved:
    """The attempt under way found the commit of the task's ref. `ref` is the branch if the task named HEAD."""

    attempt: int
    ref: str
    commit_sha: str
    at: datetime


@attrs.frozen(kw_only=True)
class Progress:
    """Progress of a stage: `done` of `total`, in `unit` (packages, MB).

    `running` are import paths of packages whose tests run, without their common part.
    """

    done: int
    total: int
    running: tuple[str, ...] = ()
    unit: str = "packages"


@REGISTRY.event("TaskProgressed")
@attrs.frozen(kw_only=True)
class TaskProgressed:
    """The stage of the attempt under way has come this far. A worker reports a bounded number of these events."""

    attempt: int
    progress: Progress
    at: datetime


@REGISTRY.event("TaskLogStored")
@attrs.frozen(kw_only=True)
class TaskLogStored:
    """The log of an attempt is stored: in the commit that ends the attempt, or later if the end came from outside."""

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
    """No worker took the task in time, or the worker of its last attempt was lost."""

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
    """A user retried a failed or expired task. `max_attempts` is the new limit of its attempts."""

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


@REGISTRY.event("TaskDropped")
@attrs.frozen(kw_only=True)
class TaskDropped:
    """The repository of the task was removed: neither the task nor its analysis is in the tables any more."""

    at: datetime


TaskEvent = (
    TaskQueued
    | TaskBlocked
    | TaskUnblocked
    | TaskStarted
    | TaskStageReached
    | TaskCommitResolved
    | TaskProgressed
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
    | TaskDropped
)
