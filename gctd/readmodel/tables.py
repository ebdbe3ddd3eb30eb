"""The tables of the tracker's read model, and how the state of an aggregate becomes a row of one."""

from __future__ import annotations

from typing import Any

import msgspec

from gctd.domain.analysis import Analysis
from gctd.domain.delivery import Delivery
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.domain.verdict import Verdict
from gctd.domain.worker import Worker
from projections.model import Column, Table

_json = msgspec.json.Encoder()

REPOS = Table(
    "repos",
    (
        Column("id"),
        Column("url"),
        Column("status"),
        Column("reason"),
        Column("commit_sha"),
        Column("default_ref"),
        Column("profiled_at", "timestamp"),
        Column("projects", "json"),
        Column("configs", "json"),
        Column("attempt", "integer"),
        Column("worker"),
        Column("session"),
        Column("lease_since", "timestamp"),
        Column("retry_at", "timestamp"),
        Column("requested", "timestamp"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)

TASKS = Table(
    "tasks",
    (
        Column("id"),
        Column("repo_id", fixed=True),
        Column("repo_url"),
        Column("project"),
        Column("ref"),
        Column("status"),
        Column("engine"),
        Column("attempt", "integer"),
        Column("max_attempts", "integer"),
        Column("worker"),
        Column("session"),
        Column("lease_since", "timestamp"),
        Column("stage"),
        Column("reason"),
        Column("retry_at", "timestamp"),
        Column("waiting_since", "timestamp"),
        Column("seen", "boolean"),
        Column("hidden", "boolean"),
        Column("analysis_id"),
        Column("created_at", "timestamp", fixed=True),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer"),
        Column("attempts", "json"),
        Column("commit_sha"),
        Column("rescored_from"),
    ),
    key=("id",),
)

ANALYSES = Table(
    "analyses",
    (
        Column("task_id"),
        Column("repo_id"),
        Column("repo_url"),
        Column("project"),
        Column("ref"),
        Column("commit_sha"),
        Column("average", "real"),
        Column("combined", "real"),
        Column("exceeded", "integer"),
        Column("total_funcs", "integer"),
        Column("engine"),
        Column("engine_version"),
        Column("crap_version"),
        Column("go_version"),
        Column("flags", "json"),
        Column("report_digest"),
        Column("report_size", "integer"),
        Column("profile_digest"),
        Column("profile_path"),
        Column("metadata", "json"),
        Column("uncovered", "json"),
        Column("analyzed_at", "timestamp"),
        Column("duration_ms", "integer"),
        Column("sequence", "integer"),
        Column("analysis_id"),
        Column("rescored_from"),
        Column("measured", "integer"),
        Column("sandbox"),
        Column("known", "json"),
        Column("states", "json"),
        Column("platform"),
        Column("source"),
        Column("baseline", "boolean"),
        Column("sources_digest"),
        Column("store_source"),
    ),
    key=("task_id",),
)

VERDICTS = Table(
    "verdicts",
    (
        Column("id"),
        Column("repo_id"),
        Column("analysis_id"),
        Column("head_task"),
        Column("commit_sha"),
        Column("base"),
        Column("kind"),
        Column("base_commit"),
        Column("rules", "json"),
        Column("result"),
        Column("base_task"),
        Column("checks", "json"),
        Column("asked_at", "timestamp"),
        Column("given_at", "timestamp"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)

DELIVERIES = Table(
    "deliveries",
    (
        Column("id"),
        Column("repo_id"),
        Column("commit_sha"),
        Column("status"),
        Column("reason"),
        Column("received_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)

WORKERS = Table(
    "workers",
    (
        Column("id"),
        Column("session"),
        Column("host"),
        Column("pid", "integer"),
        Column("running", "boolean"),
        Column("paused", "boolean"),
        Column("started_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer"),
    ),
    key=("id",),
)


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
        task.commit_sha,
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
        analysis.id,
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
