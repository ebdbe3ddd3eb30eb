"""The tables of the tracker's read model, and how each column is read from the state of an aggregate."""

from __future__ import annotations

from projections import Column, Table

REPOS = Table(
    "repos",
    (
        Column("id"),
        Column("url"),
        Column("status", of="status.value"),
        Column("reason"),
        Column("commit_sha"),
        Column("default_ref"),
        Column("profiled_at", "timestamp"),
        Column("projects", "json"),
        Column("configs", "json"),
        Column("attempt", "integer"),
        Column("worker", of=lambda repo: repo.lease and repo.lease.worker),
        Column("session", of=lambda repo: repo.lease and repo.lease.session),
        Column("lease_since", "timestamp", of=lambda repo: repo.lease and repo.lease.since),
        Column("retry_at", "timestamp"),
        Column("requested", "timestamp"),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer", given=True),
    ),
    key=("id",),
)

TRACKED_REFS = Table(
    "tracked_refs",
    (
        Column("repo", of="id"),
        Column("subdir", given=True),
        Column("tracked", given=True),
    ),
    key=("repo", "subdir"),
)
"""The ref that a repository tracks, under the empty subdir, and the ref of each project that has a setting."""

TASKS = Table(
    "tasks",
    (
        Column("id"),
        Column("repo_id"),
        Column("repo_url"),
        Column("project"),
        Column("ref"),
        Column("status", of="status.value"),
        Column("engine"),
        Column("attempt", "integer"),
        Column("max_attempts", "integer"),
        Column("worker"),
        Column("session", of=lambda task: task.lease and task.lease.session),
        Column("lease_since", "timestamp", of=lambda task: task.lease and task.lease.since),
        Column("stage"),
        Column("reason"),
        Column("retry_at", "timestamp"),
        Column("waiting_since", "timestamp"),
        Column("seen", "boolean"),
        Column("hidden", "boolean"),
        Column("analysis_id", of=lambda task: task.analysis and task.analysis.id),
        Column("created_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer", given=True),
        Column("attempts", "json"),
        Column("commit_sha", of="commit"),
        Column("rescored_from", of=lambda task: task.rescores and task.rescores.task),
    ),
    key=("id",),
)

ANALYSES = Table(
    "analyses",
    (
        Column("task_id", of="id"),
        Column("repo_id"),
        Column("repo_url"),
        Column("project"),
        Column("ref", of="analysis.ref"),
        Column("commit_sha", of="analysis.commit_sha"),
        Column("average", "real", of="analysis.summary.average"),
        Column("combined", "real", of="analysis.summary.combined"),
        Column("exceeded", "integer", of="analysis.summary.exceeded"),
        Column("total_funcs", "integer", of="analysis.summary.total_funcs"),
        Column("engine", of="analysis.engine"),
        Column("engine_version", of="analysis.engine_version"),
        Column("crap_version", of="analysis.crap_version"),
        Column("go_version", of="analysis.go_version"),
        Column("flags", "json", of="analysis.flags"),
        Column("report_digest", of="analysis.report.digest"),
        Column("report_size", "integer", of="analysis.report.size"),
        Column("profile_digest", of=lambda task: task.analysis.profile and task.analysis.profile.digest),
        Column("profile_path", of="analysis.profile_path"),
        Column("metadata", "json", of="analysis.metadata"),
        Column("uncovered", "json", of="analysis.uncovered"),
        Column("analyzed_at", "timestamp", of="analysis.analyzed_at"),
        Column("duration_ms", "integer", of="analysis.duration_ms"),
        Column("sequence", "integer", given=True),
        Column("rescored_from", of=lambda task: task.rescores.task if task.rescores else task.analysis.reused_from or None),
        Column("measured", "integer", given=True),
        Column("sandbox", of="analysis.sandbox"),
        Column("known", "json", of="analysis.measured"),
        Column("states", "json", of="analysis.states"),
        Column("platform", of="analysis.platform"),
        Column("source", of="analysis.source"),
        Column("baseline", "boolean"),
        Column("sources_digest", of=lambda task: task.analysis.sources and task.analysis.sources.digest),
        Column("store_source", of="analysis.store_source"),
        Column("analysis_id", of="analysis.id"),
    ),
    key=("task_id",),
)
"""The results of tasks, each from the state of its task. `measured` is the sequence of the result of the test run behind it."""

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
        Column("result", of="result.value"),
        Column("base_task"),
        Column("checks", "json"),
        Column("asked_at", "timestamp"),
        Column("given_at", "timestamp"),
        Column("sequence", "integer", given=True),
    ),
    key=("id",),
)

DELIVERIES = Table(
    "deliveries",
    (
        Column("id"),
        Column("repo_id"),
        Column("commit_sha"),
        Column("status", of="status.value"),
        Column("reason"),
        Column("received_at", "timestamp"),
        Column("updated_at", "timestamp"),
        Column("sequence", "integer", given=True),
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
        Column("sequence", "integer", given=True),
    ),
    key=("id",),
)
