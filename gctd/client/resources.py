"""The answers of the tracker's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from terminalkit.client import Resource

KNOWN = frozenset({"measured", "other_tests", "no_tests"})
"""States of a function whose coverage is known."""
_COUNTED_APART = KNOWN | {"excluded"}
_ENDED = frozenset({"completed", "failed", "expired"})


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A Go project of a repository: `name` is its path, `.` for the root. `problem` is the reason if it cannot be analysed."""

    name: str
    module_path: str = ""
    go_version: str = ""
    in_workspace: bool = False
    packages: int = 0
    has_tests: bool = False
    problem: str | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the discovery of a repository."""

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
    """A registered repository. `status` is `registering`, `ready` or `error`, `reason` the cause of a failed attempt."""

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
        """Whether the search for its projects is still running."""
        return self.status == "registering"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the stage of a running attempt, in `unit` (packages, MB)."""

    done: int
    total: int
    running: Sequence[str] = ()
    unit: str = "packages"

    def __str__(self) -> str:
        more = f" and {len(self.running) - 2} more" if len(self.running) > 2 else ""
        running = f", running {', '.join(self.running[:2])}{more}" if self.running else ""
        return f"{self.done} of {self.total} {self.unit}{running}"


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
    progress: Progress | None = None
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
    """The log of an attempt: its bytes, and the number of bytes that were left out."""

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
    """Finding of a check for updates about a project. `project` is None for a repository that was skipped.

    `ref` is the tracked ref of the project, `recorded_sha` the commit of its latest analysis, `remote_sha` the current commit of
    `ref`. `note` is the reason for no action, `error` the reason for a failed look-up of the ref.
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
    """Facts about the repository from its host's API or from its files."""

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
    """A function: `function` has the receiver before the name (`*T.Name`). Coverages are in percent, None if not measured.

    `state` is the state of the measurement, `reason` its cause.
    """

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
    state: str = "unknown"
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether its coverage is known, so that its value says something."""
        return self.state in KNOWN


class PackageProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A package without coverage, and why."""

    path: str
    reason: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the numbers do not include, with the reason. `path` is empty if the reason has no path."""

    path: str
    reason: str


class Analysis(Resource, frozen=True, kw_only=True):
    """The result of a task. A list of analyses may leave `entries` out."""

    id: str
    repo_info: RepoInfo
    summary: Summary
    measured: Summary
    states: Mapping[str, int]
    analyzed_at: datetime
    task_id: str = ""
    repo_id: str = ""
    project: str = "."
    entries: Sequence[Entry] = ()
    uncovered: Sequence[PackageProblem] = ()
    warnings: Sequence[LeftOut] = ()
    platform: str = ""

    @property
    def unmeasured(self) -> int:
        """The number of functions that are not measured."""
        return self.summary.total_funcs - self.measured.total_funcs

    @property
    def unmeasured_states(self) -> Mapping[str, int]:
        """The number of functions that are not measured, by state."""
        return {state: count for state, count in self.states.items() if count and state not in _COUNTED_APART}

    engine: str = ""
    crap_version: str = ""
    duration_ms: int = 0
    rescored_from: str | None = None


class Worker(Resource, frozen=True, kw_only=True):
    """A worker. `status` is `idle`, `busy`, `paused`, `full`, `draining` or `gone`.

    `cpu` in cores and `memory` in bytes cover all descendants. `tasks` are the ids of its jobs, `concurrency` is its number of
    slots for scans, `fast_concurrency` of its slots for short jobs. These fields are None or empty if it is gone.
    """

    id: str
    host: str = ""
    pid: int = 0
    cpu: float | None = None
    memory: int | None = None
    status: str = ""
    reason: str = ""
    tasks: Sequence[str] = ()
    concurrency: int | None = None
    fast_concurrency: int | None = None
    version: str = ""
    go_version: str = ""
    sandbox: str = ""

    @property
    def slots(self) -> int | None:
        """The number of jobs that it takes at a time; None if it is gone."""
        return None if self.concurrency is None else self.concurrency + (self.fast_concurrency or 0)

    @property
    def takes_jobs(self) -> bool:
        """Whether it takes jobs from the queue, now or after its running jobs."""
        return self.status in {"idle", "busy"}
