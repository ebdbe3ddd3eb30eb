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
    """What the repository's host, or its files, say about it."""

    stars: int = 0
    forks: int = 0
    language: str = ""
    license: str = ""


@attrs.frozen(kw_only=True)
class PackageProblem:
    """A package without coverage, and why: no tests, build failed, panicked, timed out, failed."""

    path: str
    reason: str


@attrs.frozen(kw_only=True)
class Analysis:
    """The result of a task. `report` is the engine's whole report, `profile` the coverage profile it was made from.

    `sandbox`: what kept the repository's code in while its tests ran: `bubblewrap`, `namespaces` or `none`; empty where that is
    not known. `measured` is the summary of the functions whose coverage is known, `states` how many functions have each state;
    both None where the engine did not say. `tests` says what became of each package, `platform` what they were built for.
    `source`: `tests` where the worker ran them, `upload` where the profile was made elsewhere.
    """

    id: str
    ref: str
    commit_sha: str
    summary: Summary
    engine: str
    engine_version: str
    crap_version: str
    go_version: str
    flags: tuple[str, ...]
    report: Blob
    analyzed_at: datetime
    duration_ms: int
    profile: Blob | None = None
    profile_path: str | None = None
    metadata: Metadata = Metadata()
    uncovered: tuple[PackageProblem, ...] = ()
    sandbox: str = ""
    measured: Summary | None = None
    states: dict[str, int] | None = None
    tests: Blob | None = None
    platform: str = ""
    source: str = "tests"


@attrs.frozen(kw_only=True)
class Measurement:
    """The run of a project's tests that a stored analysis was made from, as far as scoring it again needs it.

    `task` is the one that ran the tests, `sequence` the position in the log at which its analysis was stored. `metadata` is what
    was known of the repository then. `tests`, `platform` and `source` as in Analysis.
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
