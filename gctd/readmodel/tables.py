"""The tables of the tracker's read model."""

from __future__ import annotations

from projections import Column, Table

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

TRACKED_REFS = Table("tracked_refs", (Column("repo"), Column("subdir"), Column("tracked")), key=("repo", "subdir"))
"""The ref that a repository tracks, under the empty subdir, and the ref of each project that has a setting."""

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
        Column("analysis_id"),
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
