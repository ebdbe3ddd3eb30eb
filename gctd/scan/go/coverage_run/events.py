"""Reader of `go test -json`: the outcome of each package, and a log for readers (format: `go doc test2json`)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import msgspec

from gctd.engines.measurement import Outcome
from gctd.scan.go.coverage_run.progress import PackageCount
from gctd.scan.isolation.output import OnLog

REASON = 400
"""Characters that a reason may have."""
KILLED = "signal: killed"
"""How go tells of a program that SIGKILL has ended, as the kernel sends it for want of memory."""
_LONGEST_LINE = 1 << 20
_KEPT = 12
_NOISE = ("=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- SKIP", "PASS")
_OF_GO = (
    "ok  \t",
    "FAIL\t",
    "FAIL",
    "?   \t",
    "\t",
    "coverage:",
    "exit status ",
    "=== ",
    "--- ",
    "PASS",
    "panic: ",
    "goroutine ",
)


@attrs.frozen(kw_only=True)
class PackageResult:
    """Outcome of a package's tests. `reason` is the line with the cause, if the outcome is not ok. `seconds` is go's figure."""

    path: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0

    @property
    def tested(self) -> bool:
        """Whether its tests came to an end, with any outcome."""
        return self.outcome in ("ok", "failed", "panicked")


class _Event(msgspec.Struct, rename="pascal"):
    action: str = ""
    package: str = ""
    test: str = ""
    output: str = ""
    elapsed: float = 0.0
    import_path: str = ""
    failed_build: str = ""


@attrs.define
class _Package:
    """State of a package after the events so far."""

    ran: bool = False
    ended: str = ""
    seconds: float = 0.0
    covered: bool = False
    """Its tests came to their end: go has reported their coverage."""
    has_tests: bool = False
    """Its test program ended with success: go prints that for packages with test files only."""
    panicked: str = ""
    timed_out: str = ""
    not_built: str = ""
    failed_build: str = ""
    failed_tests: list[str] = attrs.field(factory=list)
    last_words: list[str] = attrs.field(factory=list)


class GoTestEvents:
    """Reads the events as they arrive. `listed` are all packages. Packages without events are part of the results."""

    def __init__(self, listed: Iterable[str], on_log: OnLog, count: PackageCount | None = None) -> None:
        listed = tuple(listed)
        self._packages = {path: _Package() for path in listed}
        self._count = count or PackageCount(listed)
        self._on_log = on_log
        self._build: dict[str, list[str]] = {}
        self._decoder = msgspec.json.Decoder(_Event)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take bytes of standard output. Lines other than events are added to the log."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:  # no event is that long
            self._rest = b""
        for line in lines:
            try:
                self._take(self._decoder.decode(line))
            except msgspec.DecodeError:
                self._on_log(line.decode(errors="replace"))

    def results(self, *, ended_early: str = "") -> tuple[PackageResult, ...]:
        """Return the packages, by path. `ended_early` is the reason if `go test` was ended from outside."""
        return tuple(self._result(path, package, ended_early) for path, package in sorted(self._packages.items()))

    def error_of_build(self, text: str) -> str:
        """Return the first line with this text in the output of a build, or an empty text."""
        return next((line for lines in self._build.values() for line in lines if text in line), "")

    def _take(self, event: _Event) -> None:
        if event.action in ("build-output", "output"):
            self._hear(event)
        if not event.package:
            return
        package = self._packages.setdefault(event.package, _Package())
        if event.action == "start":
            self._count.started(event.package)
        elif event.action == "run":
            self._count.started(event.package)
            package.ran = True
        elif event.action == "fail" and event.test:
            package.failed_tests.append(event.test)
        elif event.action in ("pass", "fail", "skip") and not event.test:
            package.ended, package.seconds, package.failed_build = event.action, event.elapsed, event.failed_build
            self._count.ended(event.package)

    def _hear(self, event: _Event) -> None:
        line = event.output.rstrip("\n")
        if not line.startswith(_NOISE):
            self._on_log(line)
        if event.action == "build-output":
            self._build.setdefault(event.import_path, []).append(line.strip())
            return
        package = self._packages.setdefault(event.package, _Package())
        of_go = not event.test  # a test may print the lines of go
        if of_go and line.startswith("coverage:"):
            package.covered = True
        elif of_go and line.startswith("ok  \t"):
            package.has_tests = True
        elif line.startswith("panic: test timed out"):
            package.timed_out = line
        elif line.startswith(("panic: ", "fatal error: ")):
            package.panicked = package.panicked or line
        elif of_go and line.startswith("FAIL") and line.endswith(("[build failed]", "[setup failed]")):
            package.not_built = line
        elif line.strip() and not line.startswith(_OF_GO):
            package.last_words = [*package.last_words[1 - _KEPT :], line.strip()]

    def _result(self, path: str, package: _Package, ended_early: str) -> PackageResult:
        outcome, reason = self._judge(package, ended_early)
        return PackageResult(path=path, outcome=outcome, reason=" ".join(reason.split())[:REASON], seconds=package.seconds)

    def _judge(self, package: _Package, ended_early: str) -> tuple[Outcome, str]:
        if package.not_built or package.failed_build:
            output = [line for line in self._build.get(package.failed_build, []) if not line.startswith("#")]
            killed = next((line for line in output if line.endswith(KILLED)), "")
            return ("killed", killed) if killed else ("build failed", "; ".join(output[:5]) or package.not_built)
        if package.timed_out and package.ended != "pass":
            return "timed out", package.timed_out.removeprefix("panic: ")
        if package.ended == "pass" and package.has_tests and not package.ran and not package.covered:
            return "failed", "its test program ended with success before it ran a test"
        if package.ended == "pass":
            return ("ok", "") if package.ran else ("no tests", "it has no tests")
        if package.ended == "skip":
            return "no tests", "it has no tests"
        if not package.ended:
            return "timed out", ended_early or "go test ended before the package's tests did"
        if package.last_words[-1:] == [KILLED] and not package.covered:
            return "killed", f"its tests ended by a {KILLED}"
        if package.panicked and not package.covered:
            return "panicked", package.panicked
        if package.failed_tests:
            ended = "" if package.covered else "; they ended before their coverage was written"
            return "failed", f"{', '.join(package.failed_tests[:10])} failed{ended}"
        return "failed", package.last_words[-1] if package.last_words else "its tests ended before their coverage was written"
