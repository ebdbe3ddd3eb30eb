"""The rows of the tracker's tables: each from the state of an aggregate."""

from __future__ import annotations

from typing import Any

import msgspec

from gctd.domain.analysis import Analysis
from gctd.domain.delivery.state import Delivery
from gctd.domain.repo.state import Repo
from gctd.domain.task.state import Task
from gctd.domain.verdict import Verdict
from gctd.domain.worker import Worker

_json = msgspec.json.Encoder()


def repo_row(repo: Repo, sequence: int) -> tuple[Any, ...]:
    """A repository as a row of `repos`."""
    lease = repo.lease
    return (
        repo.id,
        repo.url,
        repo.status.value,
        repo.reason,
        repo.commit_sha,
        repo.default_ref,
        repo.profiled_at,
        _text(repo.projects),
        _text(repo.configs),
        repo.attempt,
        lease.worker if lease else None,
        lease.session if lease else None,
        lease.since if lease else None,
        repo.retry_at,
        repo.requested,
        repo.created_at,
        repo.updated_at,
        sequence,
    )


def task_row(task: Task, sequence: int) -> tuple[Any, ...]:
    """A task as a row of `tasks`."""
    lease = task.lease
    return (
        task.id,
        task.repo_id,
        task.repo_url,
        task.project,
        task.ref,
        task.status.value,
        task.engine,
        task.attempt,
        task.max_attempts,
        task.worker,
        lease.session if lease else None,
        lease.since if lease else None,
        task.stage,
        task.reason,
        task.retry_at,
        task.waiting_since,
        task.seen,
        task.hidden,
        task.analysis.id if task.analysis else None,
        task.created_at,
        task.updated_at,
        sequence,
        _text(task.attempts),
        task.commit,
        task.rescores.task if task.rescores else None,
    )


def analysis_row(task: Task, analysis: Analysis, sequence: int) -> tuple[Any, ...]:
    """The result of a task as a row of `analyses`; `measured` is the sequence of the result of the test run behind it."""
    summary = analysis.summary
    return (
        task.id,
        task.repo_id,
        task.repo_url,
        task.project,
        analysis.ref,
        analysis.commit_sha,
        summary.average,
        summary.combined,
        summary.exceeded,
        summary.total_funcs,
        analysis.engine,
        analysis.engine_version,
        analysis.crap_version,
        analysis.go_version,
        _text(analysis.flags),
        analysis.report.digest,
        analysis.report.size,
        analysis.profile.digest if analysis.profile else None,
        analysis.profile_path,
        _text(analysis.metadata),
        _text(analysis.uncovered),
        analysis.analyzed_at,
        analysis.duration_ms,
        sequence,
        task.rescores.task if task.rescores else analysis.reused_from or None,
        task.rescores.sequence if task.rescores else sequence,
        analysis.sandbox,
        _text(analysis.measured),
        _text(analysis.states),
        analysis.platform,
        analysis.source,
        task.baseline,
        analysis.sources.digest if analysis.sources else None,
        analysis.store_source,
        analysis.id,
    )


def verdict_row(verdict: Verdict, sequence: int) -> tuple[Any, ...]:
    """A verdict as a row of `verdicts`."""
    return (
        verdict.id,
        verdict.repo_id,
        verdict.analysis_id,
        verdict.head_task,
        verdict.commit_sha,
        verdict.base,
        verdict.kind,
        verdict.base_commit,
        _text(verdict.rules),
        verdict.result.value,
        verdict.base_task,
        _text(verdict.checks),
        verdict.asked_at,
        verdict.given_at,
        sequence,
    )


def delivery_row(delivery: Delivery, sequence: int) -> tuple[Any, ...]:
    """A delivery of a webhook as a row of `deliveries`."""
    return (
        delivery.id,
        delivery.repo_id,
        delivery.commit_sha,
        delivery.status.value,
        delivery.reason,
        delivery.received_at,
        delivery.updated_at,
        sequence,
    )


def worker_row(worker: Worker, sequence: int) -> tuple[Any, ...]:
    """A worker as a row of `workers`."""
    return (
        worker.id,
        worker.session,
        worker.host,
        worker.pid,
        worker.running,
        worker.paused,
        worker.started_at,
        worker.updated_at,
        sequence,
    )


def _text(value: Any) -> str:
    return _json.encode(value).decode()
