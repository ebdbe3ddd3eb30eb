"""The progress of a stage: lines in its log, and reports to the tracker at a bounded rate."""

from __future__ import annotations

import asyncio
import posixpath
import re
import time
from collections.abc import Awaitable, Callable, Iterable

import structlog

from gctd.domain.task.events import Progress
from gctd.scan.isolation.output import OnLog

_log = structlog.get_logger(__name__)

OnProgress = Callable[[Progress], Awaitable[None]]
"""Called with the progress of a stage, seldom."""

LOOK = 0.5
"""Seconds between two looks at the progress."""
SILENT = 15.0
"""Seconds without a line of the log after which a line reports the progress."""
APART = 2.0
"""Seconds between two reports at least."""
STEPS = 20
"""Reports of one run at most, besides the first and the last."""
RUNNING = 8
"""Packages that a report names as running at most."""

_ENDED = re.compile(r"(?:ok  |FAIL|\?   |)\t(\S+)(?:\t| |$)")


async def no_progress(_: Progress) -> None:
    """Take no notice of progress."""


class PackageCount:
    """The packages of a run that have ended and that run now. Packages that were not listed do not count."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = frozenset(listed)
        self._running: dict[str, None] = {}
        self._ended: set[str] = set()
        common = posixpath.commonpath(self._listed) if len(self._listed) > 1 else ""
        self._before = f"{common}/" if common else ""

    def expect(self, packages: Iterable[str]) -> None:
        """Count these packages as well."""
        self._listed |= frozenset(packages)

    def started(self, package: str) -> None:
        """The tests of a package run."""
        if package in self._listed and package not in self._ended:
            self._running[package] = None

    def ended(self, package: str) -> None:
        """The tests of a package have ended, or it has none, or it was not built."""
        self._running.pop(package, None)
        if package in self._listed:
            self._ended.add(package)

    def line(self, line: str) -> None:
        """Take a line of `go test` without -json: it names a package that has ended, or says something else."""
        found = _ENDED.match(line)
        if found is not None:
            self.ended(found[1])

    @property
    def progress(self) -> Progress:
        """The progress now; import paths without the part that all packages have in common."""
        running = [path.removeprefix(self._before) or path for path in self._running]
        return Progress(done=len(self._ended), total=len(self._listed), running=tuple(running[:RUNNING]))


class ProgressReports:
    """Decides when progress is worth a report, so that a run has a bounded number of them."""

    def __init__(self) -> None:
        self._told: Progress | None = None
        self._at = 0.0

    def due(self, progress: Progress, now: float) -> bool:
        """Whether to report it now, at a time in seconds. A report that is due counts as made."""
        if self._told is None:
            self._told, self._at = progress, now
            return True
        last = progress.done == progress.total and self._told.done < progress.done
        step = max(1, -(-progress.total // STEPS))
        if last or (progress.done - self._told.done >= step and now - self._at >= APART):
            self._told, self._at = progress, now
            return True
        return False


class Following:
    """Follows a count while a program runs. `what` begins its lines of the log. Without packages they have the time."""

    def __init__(self, count: PackageCount, what: str, on_log: OnLog, on_progress: OnProgress) -> None:
        self._count = count
        self._what = what
        self._on_log = on_log
        self._on_progress = on_progress
        self._began = self._spoken = time.monotonic()
        self._reports = ProgressReports()

    def spoke(self, line: str) -> None:
        """Put a line into the log."""
        self._spoken = time.monotonic()
        self._on_log(line)

    async def run(self) -> None:
        """Report until cancelled. A report that fails is left out, and the run continues."""
        while True:
            now, progress = time.monotonic(), self._count.progress
            if now - self._spoken >= SILENT:
                self.spoke(f"{self._what}: {text_of(progress) if progress.total else f'since {now - self._began:.0f} s'}")
            if progress.total and self._reports.due(progress, now):
                try:
                    await self._on_progress(progress)
                except Exception as error:  # noqa: BLE001 - it is not worth the end of a test run
                    _log.warning("progress is not reported", reason=str(error))
            await asyncio.sleep(LOOK)


def text_of(progress: Progress) -> str:
    """Return `12 of 31 packages, running x/y`."""
    running = f", running {', '.join(progress.running)}" if progress.running else ""
    return f"{progress.done} of {progress.total} {progress.unit}{running}"
