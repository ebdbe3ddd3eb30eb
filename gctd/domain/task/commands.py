"""Commands of a task."""

from __future__ import annotations

from datetime import datetime

import attrs

from gctd.domain.analysis import Analysis
from gctd.domain.task.events import AttemptLog, Progress, TaskQueued


@attrs.frozen
class QueueTask:
    """Analyse a project, as this event says. An existing task is refused."""

    queued: TaskQueued


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
class ResolveCommit:
    """The worker of an attempt found the commit of the task's ref; fields as in TaskCommitResolved."""

    attempt: int
    session: str
    ref: str
    commit_sha: str
    at: datetime


@attrs.frozen(kw_only=True)
class ReportProgress:
    """The worker of an attempt reports the progress of its stage."""

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
    | ResolveCommit
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
