"""Measurements to score: a new test run, or the stored profile of an earlier task."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

import attrs

from eventlog import BlobMissing
from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Blob, Measurement, PackageProblem
from gctd.domain.repo.project import Project
from gctd.engines.measurement import PackageFacts, TestFacts, decode_facts
from gctd.engines.report import Report
from gctd.engines.state import State
from gctd.scan.go.coverage_run.events import PackageResult
from gctd.scan.go.coverage_run.plan import GoTestRun
from gctd.worker.work import WorkFailed


@attrs.frozen(kw_only=True)
class MeasuredRun:
    """A test run. `profile` is the text of its coverage profile, or None; `sandbox` is the kind of its sandbox.

    `tests` has the result of each package, None if unknown. `repeatable`: another run is expected to end the same.
    """

    profile: bytes | None
    go_version: str
    flags: tuple[str, ...]
    uncovered: tuple[PackageProblem, ...]
    sandbox: str
    tests: TestFacts | None
    repeatable: bool = True


def measured_now(run: GoTestRun, sandbox: str) -> MeasuredRun:
    """A run of `go test` that has just ended."""
    return MeasuredRun(
        profile=run.profile,
        go_version=run.go_version,
        flags=told(run.flags, workspace=run.workspace),
        uncovered=tuple(
            PackageProblem(path=package.path, reason=_why(package)) for package in run.packages if package.outcome != "ok"
        ),
        sandbox=sandbox,
        tests=TestFacts(
            packages=tuple(PackageFacts(path=one.path, outcome=one.outcome, reason=one.reason) for one in run.packages),
            platform=run.platform,
            scope=run.scope,
        ),
        repeatable=run.repeatable,
    )


def told(flags: Sequence[str], *, workspace: bool) -> tuple[str, ...]:
    """Return the flags of `go test` in the form of an analysis: with the mark of a run without a go.work."""
    return (*flags, *(() if workspace else ("GOWORK=off",)))


async def measured_before(measurement: Measurement, blobs: Blobs) -> MeasuredRun:
    """The run of an earlier task. Raises WorkFailed if its profile is gone."""

    async def blob_of(stored: Blob | None, gone: str) -> bytes | None:
        try:
            return None if stored is None else await blobs.get(stored.digest)
        except BlobMissing as missing:
            raise WorkFailed(f"{gone}: {missing}; analyse that commit again", permanent=True) from missing

    profile = await blob_of(measurement.profile, f"the coverage profile of {measurement.task} is gone")
    facts = await blob_of(measurement.tests, f"the test results of {measurement.task} are gone")
    return MeasuredRun(
        profile=profile,
        go_version=measurement.go_version,
        flags=tuple(flag for flag in measurement.flags if not flag.startswith("--")),  # flags of `go`, not of the scoring
        uncovered=measurement.uncovered,
        sandbox=measurement.sandbox,
        tests=None if facts is None else decode_facts(facts),
    )


def uncovered_of(run: MeasuredRun, report: Report, project: Project) -> tuple[PackageProblem, ...]:
    """Return the packages without coverage. A package without tests that tests of others reach is not one of them.

    `report` has all functions.
    """
    if run.tests is None or run.tests.scope == "own":
        return run.uncovered
    # If a test failed, a reached function has the state tests_failed, and its coverage is a lower bound.
    reached = {
        posixpath.join(project.module_path, posixpath.dirname(entry.file)).rstrip("/")
        for entry in report.entries
        if entry.state is State.OTHER_TESTS or (entry.state is State.TESTS_FAILED and entry.coverage)
    }
    untested = {one.path for one in run.tests.packages if one.outcome == "no tests"}
    return tuple(one for one in run.uncovered if one.path not in untested & reached)


def _why(package: PackageResult) -> str:
    """Return the reason for missing coverage: the outcome of the package's tests, and the line with details if it exists."""
    return package.outcome if package.outcome == "no tests" else f"{package.outcome}: {package.reason}"
