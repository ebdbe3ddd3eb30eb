"""What the API answers with: the fields that are relied on, and the whole document beside them.

Each value keeps the JSON object that it was read from as `document`, so that `--json` shows all that the server said, also
what this version does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from gctd.client.errors import ClientError

_ENDED = frozenset({"completed", "failed", "expired"})


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of the API; `document` is the object itself, as decoded."""

    document: Mapping[str, Any] = {}


R = TypeVar("R", bound=Resource)


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

    projects: list[Project] = []


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
    entries: list[Entry] = []
    uncovered: list[PackageProblem] = []
    warnings: list[LeftOut] = []
    engine: str = ""
    crap_version: str = ""
    duration_ms: int = 0


class Worker(Resource, frozen=True, kw_only=True):
    """A worker; `status` is `online`, `paused`, `draining` or `gone`.

    `cpu` in percent of the host, `memory` of the process in bytes, `tasks` what it works on.
    """

    id: str
    host: str = ""
    pid: int = 0
    cpu: float | None = None
    memory: int | None = None
    status: str = ""
    tasks: list[str] = []


def parse(type_: type[R], document: object) -> R:
    """The value that a decoded JSON object stands for. Raises ClientError where it does not fit."""
    if not isinstance(document, dict):
        raise ClientError(f"the server answered with {type(document).__name__} where an object belongs")
    try:
        return msgspec.convert({**document, "document": document}, type_)
    except msgspec.ValidationError as error:
        raise ClientError(f"the server's answer is not one that this version understands: {error}") from error


def parse_list(type_: type[R], documents: object) -> list[R]:
    """The values that a decoded JSON array of objects stands for. Raises ClientError where one does not fit."""
    if not isinstance(documents, list):
        raise ClientError(f"the server answered with {type(documents).__name__} where an array belongs")
    return [parse(type_, document) for document in documents]
