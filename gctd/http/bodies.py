"""The bodies of the answers of the tracker's API (docs/reference/api.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Self, TypeVar

import attrs

from gctd.control.heartbeat import Heartbeat, WorkerStatus
from gctd.domain.analysis import Metadata, PackageProblem, Summary
from gctd.domain.repo.project import Project
from gctd.readmodel.attempts import progress_of
from gctd.readmodel.views import AnalysisView, RepoView, TaskView, WorkerView
from httpkit import UNSET, Unset, attributes_of, member, message
from projections import timestamp_text

T = TypeVar("T")


@cache
def _required(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in attributes_of(cls) if field.default is attrs.NOTHING)


def body_of(cls: type[T], source: object, /, **others: Any) -> T:
    """Return a body with these members. Other members without a default are the attributes of `source` with their names."""
    form: type = cls
    return cls(**{name: getattr(source, name) for name in _required(form) if name not in others}, **others)


@message
class ProgressBody:
    """Progress of the stage of a running attempt."""

    done: int = member(description="how many of `total` are done")
    total: int = member()
    running: tuple[str, ...] = member(description="packages whose tests run")
    unit: str = member(description="packages, or MB of a download")


@message
class TaskBody:
    """A task. `analysis_id` is present once it is completed."""

    id: str = member(description="`task-` and digits")
    repo_url: str = member()
    project: str = member(description="path of the project in the repository, `.` for the root")
    ref: str = member(description="branch, tag or commit that is analysed")
    status: str = member(description="pending, queued, running, completed, failed or expired")
    engine: str = member()
    attempt: int = member(description="attempts started so far")
    max_attempts: int = member()
    created_at: str = member(description="RFC 3339, UTC")
    updated_at: str = member(description="RFC 3339, UTC")
    seen: bool = member()
    hidden: bool = member()
    worker: str = member(description="the worker of the last attempt; empty before the first")
    stage: str = member(description="stage of the attempt under way: clone, modules, test, analyse, store")
    reason: str = member(
        description="why the last attempt, or the task, ended without a result; or the capability that no worker has"
    )
    progress: ProgressBody | Unset = member(default=UNSET, description="while tests run, as far as it is known")
    analysis_id: str | Unset = member(default=UNSET)
    commit_sha: str | Unset = member(
        default=UNSET,
        description="the commit: of the ref as soon as a worker has found it, or the one that the task was queued for",
    )
    rescored_from: str | Unset = member(default=UNSET, description="the task whose coverage profile is scored again")

    @classmethod
    def of(cls, task: TaskView, **others: Any) -> Self:
        """The task of a row; `others` are the members of a subclass."""
        progress = progress_of(task.attempts) if task.status == "running" else None
        return body_of(
            cls,
            task,
            progress=UNSET if progress is None else body_of(ProgressBody, progress),
            analysis_id=task.analysis_id or UNSET,
            commit_sha=task.commit_sha or UNSET,
            rescored_from=task.rescored_from or UNSET,
            **others,
        )


@message
class ProfileBody:
    """Result of a discovery."""

    projects: tuple[Project, ...] = member()


@message
class RepoBody:
    """A repository. Clients rely on the capital letters of some members."""

    ID: str = member()
    URL: str = member()
    Status: str = member(description="registering, ready or error; in the event stream also removed")
    StatusReason: str = member(description="set if Status is error, or if an attempt failed")
    CommitSHA: str = member()
    DefaultRef: str = member()
    RegisteredAt: str = member(description="RFC 3339, UTC; later if it is registered again after a removal")
    ProfiledAt: str | None = member()
    Profile: ProfileBody = member()

    @classmethod
    def of(cls, repo: RepoView, **others: Any) -> Self:
        """The repository of a row; `others` are the members of a subclass."""
        return cls(
            ID=repo.id,
            URL=repo.url,
            Status=repo.status,
            StatusReason=repo.reason,
            CommitSHA=repo.commit_sha,
            DefaultRef=repo.default_ref,
            RegisteredAt=repo.created_at,
            ProfiledAt=repo.profiled_at,
            Profile=ProfileBody(projects=repo.projects),
            **others,
        )


@message
class RepoInfoBody:
    """The analysed repository, and its commit."""

    url: str = member()
    ref: str = member()
    commit_sha: str = member()
    metadata: Metadata = member()


@message
class AnalysisBody:
    """The result of a task: the findings of the engine, and their origin."""

    id: str = member(description="the same for every analysis of a project")
    repo_id: str = member()
    project: str = member()
    task_id: str = member()
    repo_info: RepoInfoBody = member()
    summary: Summary = member(description="of all functions")
    measured: Summary = member(description="of the functions with known coverage")
    states: dict[str, int] = member(description="number of functions by state")
    engine: str = member()
    engine_version: str = member()
    crap_version: str = member()
    go_version: str = member()
    platform: str = member(description="platform of the build, as linux/amd64; empty if unknown")
    coverage_source: str = member(description="tests: a worker ran them; upload: the coverage profile was made elsewhere")
    flags: tuple[str, ...] = member(description="flags of the test run")
    profile_digest: str | None = member(description="SHA-256 of the coverage profile")
    profile_path: str | None = member()
    sandbox: str = member(
        description="confinement of the tests: bubblewrap, namespaces, landlock (files only) or none; empty if unknown"
    )
    uncovered: tuple[PackageProblem, ...] = member(description="packages without coverage, and why")
    analyzed_at: str = member(description="RFC 3339, UTC")
    duration_ms: int = member()
    rescored_from: str | None = member(description="the task that ran the tests, if they were not run for this analysis")
    source: str | Unset | None = member(
        default=UNSET,
        description="address of a file's page, with `{path}` (percent-encoded) and `{line}`; null if unknown. Not in lists",
    )
    entries: Any | Unset = member(default=UNSET, description="functions: measured ones first, highest score first; not in lists")
    raw_output: Any | Unset = member(default=UNSET, description="the report in go-crap's own form; not in lists")
    warnings: Any | Unset = member(default=UNSET, description="files that were left out, and why; not in lists")
    excluded: Any | Unset = member(default=UNSET, description="functions and files that a rule leaves out; not in lists")

    @classmethod
    def of(cls, analysis: AnalysisView, parts: Mapping[str, Any] | None = None) -> AnalysisBody:
        """Return the analysis of a row. `parts` are source, entries, raw_output, warnings and excluded, if they are requested."""
        return body_of(
            cls,
            analysis,
            id=analysis.analysis_id,
            repo_info=RepoInfoBody(
                url=analysis.repo_url, ref=analysis.ref, commit_sha=analysis.commit_sha, metadata=analysis.metadata
            ),
            measured=analysis.known,
            coverage_source=analysis.source,
            **(parts or {}),
        )


@message
class WorkerBody:
    """A worker. The fields that it reports are null, or empty, if it is gone."""

    id: str = member()
    host: str = member()
    pid: int = member()
    cpu: float | None = member(description="cores used lately, with all descendants: 1.5 is one and a half")
    memory: int | None = member(description="resident bytes, with all descendants")
    status: WorkerStatus = member(
        description="paused also while jobs from before the pause run; full if its disk has no room, gone if it is absent"
    )
    reason: str = member(description="why no job has room on its disk; empty if its status is not full")
    tasks: tuple[str, ...] = member(description="its jobs: ids of tasks, and of repositories whose projects it looks for")
    concurrency: int | None = member(description="scans that it does at a time")
    fast_concurrency: int | None = member(description="short jobs that it does at a time, in addition to scans")
    version: str = member(description="of gctd")
    engines: dict[str, str] = member(description="the engines that it has, with their versions")
    go_version: str = member()
    fetches_go: bool = member(description="it downloads the official toolchain if a module asks for a newer one")
    platform: str = member(description="operating system and architecture, as linux/amd64; empty if not known")
    sandbox: str = member(description="how it confines the code of repositories")
    started_at: str = member()
    heard_at: str | None = member(description="when it was heard of last, by the broker's clock")

    @classmethod
    def of(cls, worker: WorkerView, beat: tuple[Heartbeat, datetime] | None) -> WorkerBody:
        """Return the worker of a row. `beat` is its own report, and the time of the report, if the worker is present."""
        here, at = beat if beat is not None and beat[0].session == worker.session else (None, None)
        status = WorkerStatus.GONE if here is None else here.shown(paused=worker.paused)
        return cls(
            id=worker.id,
            host=worker.host,
            pid=worker.pid,
            cpu=here.cpu if here else None,
            memory=here.memory if here else None,
            status=status,
            reason=here.reason if here and status is WorkerStatus.FULL else "",
            tasks=here.tasks if here else (),
            concurrency=here.concurrency if here else None,
            fast_concurrency=here.fast if here else None,
            version=here.version if here else "",
            engines=here.engines if here else {},
            go_version=here.go_version if here else "",
            fetches_go=here.fetches_go if here else False,
            platform=here.platform if here else "",
            sandbox=here.sandbox if here else "",
            started_at=worker.started_at,
            heard_at=timestamp_text(at) if at else None,
        )
