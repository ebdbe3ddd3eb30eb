"""The course of each kind of job: its aggregate, the work, and the commands that report on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

import attrs

from eventlog import Decider
from gctd.domain.analysis import Analysis
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import FailDiscovery, FinishDiscovery, StartDiscovery
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import CompleteTask, FailTask, ReachStage, ReportProgress, ResolveCommit, StartTask, StoreLog
from gctd.domain.task.events import AttemptLog, Progress
from gctd.domain.task.state import Task
from gctd.scan.isolation.output import OnLog
from gctd.worker.attempts.reports import now
from gctd.worker.work import Discovered, OnStage, ResolvedRef, Work

S = TypeVar("S", Repo, Task)
R = TypeVar("R")


@attrs.frozen(kw_only=True)
class JobFlow(Generic[S, R]):
    """The course of one kind of job: its aggregate, the work, and the commands that report on it."""

    decider: Decider[S, Any, Any]
    work: Callable[[S, OnStage, OnLog], Awaitable[R]]
    start: Callable[[], Any]
    stage: Callable[[S, str], Any] | None
    resolved: Callable[[S, ResolvedRef], Any] | None
    progress: Callable[[S, Progress], Any] | None
    finish: Callable[[S, R, AttemptLog | None], Any]
    fail: Callable[[S, str, bool, datetime, AttemptLog | None], Any]
    store_log: Callable[[S, AttemptLog], Any] | None
    """None: its attempts have no log."""


def discovery(work: Work, worker: str, session: str) -> JobFlow[Repo, Discovered]:
    async def discover(known: Repo, _: OnStage, __: OnLog) -> Discovered:
        return await work.discover(known)

    return JobFlow(
        decider=REPO,
        work=discover,
        start=lambda: StartDiscovery(worker=worker, session=session, at=now()),
        stage=None,
        resolved=None,
        progress=None,
        finish=lambda known, found, _: FinishDiscovery(
            attempt=known.attempt,
            session=session,
            commit_sha=found.commit_sha,
            default_ref=found.default_ref,
            projects=found.projects,
            at=now(),
        ),
        fail=lambda known, reason, permanent, retry_at, _: FailDiscovery(
            attempt=known.attempt,
            session=session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
        ),
        store_log=None,
    )


def scan(work: Work, worker: str, session: str) -> JobFlow[Task, Analysis]:
    return JobFlow(
        decider=TASK,
        work=work.scan,
        start=lambda: StartTask(worker=worker, session=session, at=now()),
        stage=lambda queued, stage: ReachStage(attempt=queued.attempt, session=session, stage=stage, at=now()),
        resolved=lambda queued, found: ResolveCommit(
            attempt=queued.attempt, session=session, ref=found.ref, commit_sha=found.commit_sha, at=now()
        ),
        progress=lambda queued, progress: ReportProgress(attempt=queued.attempt, session=session, progress=progress, at=now()),
        finish=lambda queued, analysis, log: CompleteTask(
            attempt=queued.attempt, session=session, analysis=analysis, at=now(), log=log
        ),
        fail=lambda queued, reason, permanent, retry_at, log: FailTask(
            attempt=queued.attempt,
            session=session,
            reason=reason,
            permanent=permanent,
            retry_at=retry_at,
            at=now(),
            log=log,
        ),
        store_log=lambda queued, log: StoreLog(attempt=queued.attempt, log=log, at=now()),
    )
