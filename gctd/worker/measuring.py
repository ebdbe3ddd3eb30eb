"""What an analysis is scored from: a test run, of now or, where its profile was stored, of an earlier task."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from eventlog import BlobMissing
from eventlog.broker.blobs import Blobs
from gctd.domain.analysis import Measurement, PackageProblem
from gctd.scan.go.events import PackageResult
from gctd.scan.go.run_tests import GoTestRun
from gctd.worker.work import WorkFailed


@attrs.frozen(kw_only=True)
class Measured:
    """A test run. `profile` is its coverage profile as a file, None where there is none; `sandbox` what it ran in."""

    profile: Path | None
    go_version: str
    flags: tuple[str, ...]
    uncovered: tuple[PackageProblem, ...]
    sandbox: str


def measured_now(run: GoTestRun, sandbox: str) -> Measured:
    """A run of `go test` that has just ended."""
    return Measured(
        profile=run.profile,
        go_version=run.go_version,
        flags=(*run.flags, *(() if run.workspace else ("GOWORK=off",))),
        uncovered=tuple(
            PackageProblem(path=package.path, reason=_why(package)) for package in run.packages if package.outcome != "ok"
        ),
        sandbox=sandbox,
    )


async def measured_before(measurement: Measurement, blobs: Blobs, profile: Path) -> Measured:
    """The run of an earlier task; its profile is written to the file `profile`. Raises WorkFailed where that is gone."""
    stored = measurement.profile
    if stored is not None:
        try:
            body = await blobs.get(stored.digest)
        except BlobMissing as missing:
            reason = f"the coverage profile of {measurement.task} is gone: {missing}; analyse that commit anew"
            raise WorkFailed(reason, permanent=True) from missing
        await asyncio.to_thread(profile.write_bytes, body)
    return Measured(
        profile=None if stored is None else profile,
        go_version=measurement.go_version,
        flags=tuple(flag for flag in measurement.flags if not flag.startswith("--")),  # those of `go`, not of the scoring
        uncovered=measurement.uncovered,
        sandbox=measurement.sandbox,
    )


def _why(package: PackageResult) -> str:
    """Why a package has no coverage: what became of its tests, and the line that says more where there is one."""
    return package.outcome if package.outcome == "no tests" else f"{package.outcome}: {package.reason}"
