"""The rows of the tracker's read model as values. Times are RFC 3339 text in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import msgspec

from gctd.domain.analysis import Metadata, PackageProblem, Summary
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.state import Task
from gctd.domain.verdict import Finding, Result, Rules
from gctd.readmodel.tables import REPOS, TASKS
from projections import Row, Table, timestamp_text


@attrs.frozen(kw_only=True)
class RepoView:
    """A repository."""

    id: str
    url: str
    status: str
    reason: str
    commit_sha: str
    default_ref: str
    profiled_at: str | None
    projects: tuple[Project, ...]
    configs: dict[str, ProjectConfig]
    attempt: int
    worker: str | None
    session: str | None
    lease_since: str | None
    retry_at: str | None
    requested: str
    created_at: str
    updated_at: str
    sequence: int

    @classmethod
    def of(cls, row: Row) -> RepoView:
        """The repository in a row of `repos`."""
        return cls(
            **{
                **row,
                "projects": _decoded(row["projects"], tuple[Project, ...]),
                "configs": _decoded(row["configs"], dict[str, ProjectConfig]),
            }
        )

    @classmethod
    def of_state(cls, repo: Repo, sequence: int) -> RepoView:
        """The repository as it will be read, once the read model has its commit."""
        return cls.of(_as_read(REPOS, REPOS.row(repo, sequence=sequence)))


@attrs.frozen(kw_only=True)
class TaskView:
    """A task; `attempts` is JSON (see `gctd.readmodel.attempts`)."""

    id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    status: str
    engine: str
    attempt: int
    max_attempts: int
    worker: str
    session: str | None
    lease_since: str | None
    stage: str
    reason: str
    retry_at: str | None
    waiting_since: str
    seen: bool
    hidden: bool
    analysis_id: str | None
    created_at: str
    updated_at: str
    sequence: int
    attempts: str
    commit_sha: str | None
    rescored_from: str | None

    @classmethod
    def of(cls, row: Row) -> TaskView:
        """The task in a row of `tasks`."""
        return cls(**{**row, "seen": bool(row["seen"]), "hidden": bool(row["hidden"])})

    @classmethod
    def of_state(cls, task: Task, sequence: int) -> TaskView:
        """The task as it will be read, once the read model has its commit."""
        return cls.of(_as_read(TASKS, TASKS.row(task, sequence=sequence)))


@attrs.frozen(kw_only=True)
class AnalysisView:
    """The result of one task; its report is in the blob store.

    `known` is the summary of the functions with known coverage, `states` the number of functions by state.
    `baseline`: the analysis serves only as a base of comparisons. `sources_digest` and
    `store_source`: see Analysis.
    """

    analysis_id: str
    task_id: str
    repo_id: str
    repo_url: str
    project: str
    ref: str
    commit_sha: str
    summary: Summary
    engine: str
    engine_version: str
    crap_version: str
    go_version: str
    flags: tuple[str, ...]
    report_digest: str
    report_size: int
    profile_digest: str | None
    profile_path: str | None
    metadata: Metadata
    uncovered: tuple[PackageProblem, ...]
    analyzed_at: str
    duration_ms: int
    sequence: int
    rescored_from: str | None
    measured: int
    sandbox: str
    known: Summary
    states: dict[str, int]
    platform: str
    source: str
    baseline: bool
    sources_digest: str | None
    store_source: str

    @property
    def risky(self) -> int:
        """Functions over the threshold with known coverage."""
        return self.known.exceeded

    @classmethod
    def of(cls, row: Row) -> AnalysisView:
        """The analysis in a row of `analyses`."""
        fields = dict(row)
        summary = Summary(**{name: fields.pop(name) for name in ("average", "combined", "exceeded", "total_funcs")})
        fields["flags"] = _decoded(fields["flags"], tuple[str, ...])
        fields["metadata"] = _decoded(fields["metadata"], Metadata)
        fields["uncovered"] = _decoded(fields["uncovered"], tuple[PackageProblem, ...])
        fields["known"] = _decoded(fields["known"], Summary)
        fields["states"] = _decoded(fields["states"], dict[str, int])
        fields["baseline"] = bool(fields["baseline"])
        return cls(summary=summary, **fields)


@attrs.frozen(kw_only=True)
class VerdictView:
    """The gate's judgement of a commit. `result` is `unknown` until it is given."""

    id: str
    repo_id: str
    analysis_id: str
    head_task: str
    commit_sha: str
    base: str
    kind: str
    base_commit: str
    rules: Rules
    result: Result
    base_task: str
    checks: tuple[Finding, ...]
    asked_at: str
    given_at: str | None
    sequence: int

    @classmethod
    def of(cls, row: Row) -> VerdictView:
        """The verdict in a row of `verdicts`."""
        decoded = {"rules": _decoded(row["rules"], Rules), "checks": _decoded(row["checks"], tuple[Finding, ...])}
        return cls(**{**row, **decoded, "result": Result(row["result"])})


@attrs.frozen(kw_only=True)
class WorkerView:
    """A worker, as far as its events tell; whether it is alive now only its presence tells."""

    id: str
    session: str
    host: str
    pid: int
    running: bool
    paused: bool
    started_at: str
    updated_at: str
    sequence: int

    @classmethod
    def of(cls, row: Row) -> WorkerView:
        """The worker in a row of `workers`."""
        return cls(**{**row, "running": bool(row["running"]), "paused": bool(row["paused"])})


def _decoded(text: str, type_: Any) -> Any:
    return msgspec.json.decode(text, type=type_)


def _as_read(table: Table, row: tuple[Any, ...]) -> Row:
    return dict(zip(table.names, (timestamp_text(value) if isinstance(value, datetime) else value for value in row), strict=True))
