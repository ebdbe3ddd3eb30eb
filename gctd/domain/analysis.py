"""What a completed task leaves behind: the summary, and what made the numbers (DESIGN, section 6)."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

import attrs


@attrs.frozen(kw_only=True)
class Summary:
    """The four figures of a report (specification, section 2)."""

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
    not known.
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


@attrs.frozen(kw_only=True)
class Measurement:
    """The run of a project's tests that a stored analysis was made from, as far as scoring it again needs it.

    `task` is the one that ran the tests, `sequence` the position in the log at which its analysis was stored. `metadata` is what
    was known of the repository then.
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


def analysis_id(repo_id: str, project: str) -> str:
    """The id of a project's analysis: 32 hex digits, the same for every run (specification, section 1)."""
    return sha256(f"{repo_id}\n{project}".encode()).hexdigest()[:32]


def profile_path(repo_id: str, project: str, commit_sha: str) -> str:
    """Where a coverage profile is kept: `coverage/<repo_id>/<project>/<commit_sha>.out` (specification, section 1)."""
    return f"coverage/{repo_id}/{project}/{commit_sha}.out"
