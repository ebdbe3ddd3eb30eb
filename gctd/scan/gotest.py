"""Running a project's tests with coverage, and what became of each package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

import attrs
import msgspec

from gctd.scan.errors import GoError
from gctd.scan.process import Finished, Limits, run
from gctd.scan.toolchain import Toolchain, go_environment

PackageOutcome = Literal["ok", "no tests", "failed", "build failed", "panicked", "timed out"]
OnStage = Callable[[str], Awaitable[None]]

MARGIN = 15.0
"""Seconds that `go test` is given less than the whole run: so it tells itself which package took too long."""
_REASON = 400


@attrs.frozen(kw_only=True)
class PackageResult:
    """What became of a package's tests; `reason` is the line that says why, where it is not ok; `seconds` as go counts."""

    path: str
    outcome: PackageOutcome
    reason: str = ""
    seconds: float = 0.0


@attrs.frozen(kw_only=True)
class GoTestRun:
    """A run of `go test`. `profile` is None where none was written; `workspace`: with the go.work of the repository."""

    profile: Path | None
    packages: tuple[PackageResult, ...]
    go_version: str
    flags: tuple[str, ...]
    exit_code: int | None
    log_tail: str
    workspace: bool


@attrs.frozen(kw_only=True)
class Plan:
    """What to run: the module, where the profile goes, flags (already checked), seconds for all of it, and whether a go.work
    is active."""

    module_dir: Path
    profile: Path
    job: Path
    cache: Path
    timeout: float
    test_args: tuple[str, ...] = ()
    go_flags: tuple[str, ...] = ()
    workspace: bool = False
    limits: Limits = Limits()


async def run_tests(toolchain: Toolchain, plan: Plan, on_stage: OnStage) -> GoTestRun:
    """Fetch the modules, then run all tests of a module with coverage. Packages that fail are told, not raised.

    A workspace that cannot be loaded is left aside. Raises GoError where nothing could be tested at all.
    """
    await on_stage("modules")
    workspace = plan.workspace
    loaded = await _load(toolchain, plan, workspace=workspace)
    if not loaded.ok and workspace:
        workspace = False
        loaded = await _load(toolchain, plan, workspace=workspace)
    if not loaded.ok:
        raise GoError(f"the modules cannot be loaded: go {loaded.how()}: {_last_lines(loaded.output_tail)}")
    await on_stage("test")
    left = plan.timeout - loaded.duration
    flags = (*plan.go_flags, *plan.test_args)
    events = _Events()
    finished = await run(
        [
            str(toolchain.go),
            "test",
            "-json",
            *flags,
            f"-coverprofile={plan.profile}",
            f"-timeout={max(left - MARGIN, 1.0):.0f}s",
            "./...",
        ],
        cwd=plan.module_dir,
        env=_environment(toolchain, plan, workspace=workspace),
        timeout=max(left, 1.0),
        on_stdout=events.feed,
        limits=plan.limits,
    )
    if finished.timed_out:
        raise GoError(f"the tests were ended after {plan.timeout:.0f} s: their time was over")
    packages = events.results()
    profile = plan.profile if plan.profile.is_file() and plan.profile.stat().st_size else None
    if profile is None and not any(package.outcome in {"ok", "no tests"} for package in packages):
        why = next((package.reason for package in packages if package.reason), _last_lines(finished.output_tail))
        raise GoError(f"no package could be tested: go test {finished.how()}: {why}")
    return GoTestRun(
        profile=profile,
        packages=packages,
        go_version=toolchain.version,
        flags=flags,
        exit_code=finished.exit_code,
        log_tail=finished.output_tail,
        workspace=workspace,
    )


async def _load(toolchain: Toolchain, plan: Plan, *, workspace: bool) -> Finished:
    """Load all packages and their tests, which fetches just the modules that they need; a broken package is no error yet."""
    return await run(
        [
            str(toolchain.go),
            "list",
            "-e",
            "-deps",
            "-test",
            *plan.go_flags,
            "-f",
            "{{if .DepOnly}}{{else}}{{.ImportPath}}{{end}}",
            "./...",
        ],
        cwd=plan.module_dir,
        env=_environment(toolchain, plan, workspace=workspace),
        timeout=plan.timeout,
        on_stdout=lambda _: None,
        limits=plan.limits,
    )


def _environment(toolchain: Toolchain, plan: Plan, *, workspace: bool) -> dict[str, str]:
    return dict(go_environment(toolchain, job=plan.job, cache=plan.cache, workspace=workspace))


class _Event(msgspec.Struct, rename="pascal"):
    """A line of `go test -json` (`go doc test2json`)."""

    action: str = ""
    package: str = ""
    test: str = ""
    output: str = ""
    elapsed: float = 0.0
    import_path: str = ""


@attrs.define
class _Package:
    """What has been heard of a package so far."""

    ran: bool = False
    ended: str = ""
    seconds: float = 0.0
    said: list[str] = attrs.field(factory=list)
    panicked: str = ""
    timed_out: str = ""
    not_built: str = ""


class _Events:
    """Reads the lines of `go test -json` as they come; what is not one is passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._packages: dict[str, _Package] = {}
        self._build: dict[str, list[str]] = {}
        self._decoder = msgspec.json.Decoder(_Event)

    def feed(self, chunk: bytes) -> None:
        """Bytes of standard output."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            try:
                event = self._decoder.decode(line)
            except msgspec.DecodeError:
                continue
            self._take(event)

    def _take(self, event: _Event) -> None:
        if event.action == "build-output":
            self._build.setdefault(event.import_path.partition(" ")[0], []).append(event.output)
            return
        if not event.package:
            return
        package = self._packages.setdefault(event.package, _Package())
        package.ran |= event.action == "run"
        if event.action == "output":
            self._hear(package, event.output.strip())
        elif event.action in {"pass", "fail", "skip"} and not event.test:
            package.ended, package.seconds = event.action, event.elapsed

    @staticmethod
    def _hear(package: _Package, line: str) -> None:
        if line.startswith("panic: test timed out"):
            package.timed_out = line
        elif line.startswith(("panic:", "fatal error:")) and not package.panicked:
            package.panicked = line
        elif line.startswith("FAIL") and line.endswith(("[build failed]", "[setup failed]")):
            package.not_built = line
        elif line and not line.startswith(("=== ", "FAIL", "ok ", "coverage:", "exit status", "PASS", "?")):
            package.said = [*package.said[-7:], line]

    def results(self) -> tuple[PackageResult, ...]:
        """The packages, by path."""
        return tuple(self._result(path, package) for path, package in sorted(self._packages.items()))

    def _result(self, path: str, package: _Package) -> PackageResult:
        outcome: PackageOutcome = "ok"
        reason = ""
        if package.not_built:
            outcome, reason = "build failed", " ".join(self._build.get(path, package.said)) or package.not_built
        elif package.timed_out:
            outcome, reason = "timed out", package.timed_out
        elif package.ended != "pass" and package.panicked:
            outcome, reason = "panicked", package.panicked
        elif package.ended == "fail" or not package.ended:
            failed = [line for line in package.said if line.startswith("--- FAIL")]
            outcome, reason = "failed", "; ".join(failed) or (package.said[-1] if package.said else "its tests failed")
        elif package.ended == "skip" or not package.ran:
            outcome, reason = "no tests", "it has no tests"
        return PackageResult(path=path, outcome=outcome, reason=" ".join(reason.split())[:_REASON], seconds=package.seconds)


def _last_lines(text: str, count: int = 4) -> str:
    lines: Sequence[str] = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:])[-2 * _REASON :] or "it said nothing"
