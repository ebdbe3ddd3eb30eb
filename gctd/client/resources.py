"""What the tracker's API answers with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from terminalkit.client.resources import Resource

_ENDED = frozenset({"completed", "failed", "expired"})


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A Go project of a repository: `name` is its path, `.` for the root; `problem` says why it cannot be analysed."""

    name: str
    module_path: str = ""
    go_version: str = ""
    in_workspace: bool = False
    packages: int = 0
    has_tests: bool = False
    problem: str | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What the discovery of a repository found."""

    projects: Sequence[Project] = ()


class Repo(
    Resource,
    frozen=True,
    kw_only=True,
    rename={
        "url": "URL",
        "id": "ID",
        "status": "Status",
        "reason": "StatusReason",
        "commit_sha": "CommitSHA",
        "profiled_at": "ProfiledAt",
        "profile": "Profile",
    },
):
    """A registered repository; `status` is `registering`, `ready` or `error`, `reason` why that or the last attempt failed."""

    url: str
    id: str
    status: str
    reason: str | None = None
    commit_sha: str | None = None
    profiled_at: datetime | None = None
    profile: Profile | None = None

    @property
    def projects(self) -> Sequence[Project]:
        """The projects found, none before it is ready."""
        return () if self.profile is None else self.profile.projects

    @property
    def registering(self) -> bool:
        """Whether its projects are still being looked for."""
        return self.status == "registering"


class Task(Resource, frozen=True, kw_only=True):
    """An analysis of one project, to be done or done; times are aware. `deleted`: the server has it no more."""

    id: str
    repo_url: str
    status: str
    created_at: datetime
    updated_at: datetime
    project: str = "."
    ref: str = ""
    engine: str = ""
    attempt: int = 0
    max_attempts: int = 0
    seen: bool = False
    hidden: bool = False
    deleted: bool = False
    analysis_id: str | None = None
    commit_sha: str | None = None
    rescored_from: str | None = None
    worker: str | None = None
    stage: str | None = None
    reason: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.deleted or self.status in _ENDED

    @property
    def state(self) -> str:
        """Its status, or that it was deleted."""
        return "deleted" if self.deleted else self.status

    @property
    def completed(self) -> bool:
        """Whether it has an analysis."""
        return self.status == "completed" and not self.deleted


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of an attempt; `duration_ms` is None while it lasts."""

    stage: str
    started_at: datetime
    duration_ms: int | None = None


class StoredLog(msgspec.Struct, frozen=True, kw_only=True):
    """The log of an attempt: its bytes, and how many were left out."""

    size: int
    cut: int = 0


class Attempt(Resource, frozen=True, kw_only=True):
    """An attempt at a task; `outcome` and `ended_at` are None while it lasts."""

    attempt: int
    worker: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    reason: str = ""
    stages: Sequence[Stage] = ()
    log: StoredLog | None = None


class Update(Resource, frozen=True, kw_only=True):
    """What a check for updates found about a project; `project` is None for a repository that was skipped.

    `ref` is what the project tracks, `recorded_sha` the commit of its latest analysis, `remote_sha` what the ref leads to now.
    `note` says why nothing was scheduled, `error` why the ref could not be looked up.
    """

    repo_url: str
    project: str | None = None
    ref: str | None = None
    recorded_sha: str | None = None
    remote_sha: str | None = None
    moved: bool = False
    scheduled: bool = False
    task_id: str | None = None
    note: str | None = None
    error: str | None = None


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What the repository's host, or its files, say about it."""

    stars: int = 0
    forks: int = 0
    language: str = ""
    license: str = ""


class RepoInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a repository that an analysis is about."""

    url: str
    ref: str = ""
    commit_sha: str = ""
    metadata: Metadata | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an analysis: CRAP on average and in total, functions above the threshold, functions."""

    average: float
    combined: float
    exceeded: int
    total_funcs: int


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A function: `function` has the receiver before the name (`*T.Name`); coverages in percent, None where none was measured."""

    file: str
    function: str
    crap: float
    name: str = ""
    receiver: str = ""
    package: str = ""
    line: int = 0
    cyclomatic: int = 0
    coverage: float | None = None
    stmt_coverage: float | None = None


class PackageProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A package without coverage, and why."""

    path: str
    reason: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the numbers do not include, and why; `path` is empty where no path is meant."""

    path: str
    reason: str


class Analysis(Resource, frozen=True, kw_only=True):
    """The result of a task. A list of analyses may leave `entries` out."""

    id: str
    repo_info: RepoInfo
    summary: Summary
    analyzed_at: datetime
    repo_id: str = ""
    project: str = "."
    entries: Sequence[Entry] = ()
    uncovered: Sequence[PackageProblem] = ()
    warnings: Sequence[LeftOut] = ()
    engine: str = ""
    crap_version: str = ""
    duration_ms: int = 0
    rescored_from: str | None = None


class Worker(Resource, frozen=True, kw_only=True):
    """A worker; `status` is `idle`, `busy`, `paused`, `draining` or `gone`.

    `cpu` in cores and `memory` in bytes with all descendants, `tasks` what it works on, `concurrency` at how many at a time; None
    or empty where it is gone.
    """

    id: str
    host: str = ""
    pid: int = 0
    cpu: float | None = None
    memory: int | None = None
    status: str = ""
    tasks: Sequence[str] = ()
    concurrency: int | None = None
    version: str = ""
    go_version: str = ""
    sandbox: str = ""

    @property
    def takes_jobs(self) -> bool:
        """Whether it takes what is in the queue, now or when it is done with what it does."""
        return self.status in {"idle", "busy"}
