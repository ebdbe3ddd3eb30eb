"""The result of a completed task: its summary, and the inputs of its numbers."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

import attrs


@attrs.frozen(kw_only=True)
class Summary:
    """The four figures of a report."""

    average: float
    combined: float
    exceeded: int
    total_funcs: int


@attrs.frozen(kw_only=True)
class Blob:
    """A body in the blob store: its SHA-256 and its size in bytes."""

    digest: str
    size: int


@attrs.frozen(kw_only=True)
class Metadata:
    """Facts about the repository from its host's API or from its files."""

    stars: int = 0
    forks: int = 0
    language: str = ""
    license: str = ""


@attrs.frozen(kw_only=True)
class CommitFacts:
    """Facts about a commit: the author's name, time (RFC 3339) and subject, and the ids of its parents."""

    author: str
    at: str
    subject: str
    parents: tuple[str, ...]


@attrs.frozen(kw_only=True)
class PackageProblem:
    """A package without coverage, and why: no tests, build failed, panicked, timed out, killed, failed, or not in an upload."""

    path: str
    reason: str

    @property
    def tested(self) -> bool:
        """Whether the package has tests: then its coverage is unknown, or known in part. Without tests it is 0 %."""
        return self.reason != "no tests"


@attrs.frozen(kw_only=True)
class Analysis:
    """The result of a task. `report` is the engine's whole report, `profile` the coverage profile behind the report.

    `sandbox`: the confinement of the repository's code during its tests: `bubblewrap`, `namespaces`, `landlock` (files only) or
    `none`; empty if unknown.
    `measured` is the summary of the functions with known coverage. `states` has the number of functions by state. `tests` has the
    outcome of each package, `platform` the platform of the build.
    `source`: `tests` if the worker ran the tests, `upload` if the profile was uploaded. `reused_from`: the task that made the
    analysis, if the analysis is also the result of a later task; empty for the task that made it. `sources` names the kept source
    (`gctd.engines.functions.sources`). `store_source` is the setting of that name.
    `projects` has the names of all projects at the commit; empty if unknown.
    """

    id: str
    ref: str
    commit_sha: str
    summary: Summary
    measured: Summary
    states: dict[str, int]
    engine: str
    engine_version: str
    crap_version: str
    go_version: str
    flags: tuple[str, ...]
    report: Blob
    analyzed_at: datetime
    duration_ms: int
    store_source: str
    profile: Blob | None = None
    profile_path: str | None = None
    metadata: Metadata = Metadata()
    uncovered: tuple[PackageProblem, ...] = ()
    sandbox: str = ""
    tests: Blob | None = None
    platform: str = ""
    source: str = "tests"
    reused_from: str = ""
    sources: Blob | None = None
    projects: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Measurement:
    """The run of a project's tests that a stored analysis was made from, as far as scoring it again needs it.

    `task` ran the tests. `sequence` is the position in the log of the analysis that is scored again: of this task,
    or of a later task that used the run. `metadata` is what was known of the repository then. `tests`, `platform` and `source` as
    in Analysis.
    """

    task: str
    sequence: int
    go_version: str
    flags: tuple[str, ...]
    profile: Blob | None
    profile_path: str | None
    metadata: Metadata
    uncovered: tuple[PackageProblem, ...]
    sandbox: str = ""
    tests: Blob | None = None
    platform: str = ""
    source: str = "tests"


def analysis_id(repo_id: str, project: str) -> str:
    """The id of a project's analysis: 32 hex digits, the same for every run."""
    return sha256(f"{repo_id}\n{project}".encode()).hexdigest()[:32]


def profile_path(repo_id: str, project: str, commit_sha: str) -> str:
    """The path of a coverage profile: `coverage/<repo_id>/<project>/<commit_sha>.out`."""
    return f"coverage/{repo_id}/{project}/{commit_sha}.out"
