"""Running a project's tests with coverage, and what became of each package."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.options import format_duration, parse_duration
from gctd.scan.errors import GoError
from gctd.scan.git.messages import redact
from gctd.scan.go.events import REASON, GoTestEvents, PackageResult
from gctd.scan.go.toolchain import TRUST, Downloads, GoPlaces, Toolchain, go_environment
from gctd.scan.isolation.output import Lines, OnLog, no_log
from gctd.scan.isolation.process import MIB, Finished, Limits, run
from gctd.scan.isolation.sandbox import NONE, Sandbox, View

OnStage = Callable[[str], Awaitable[None]]
Plant = Callable[[Sequence[str], float], Awaitable[None]]
"""Called before anything is built, with the packages of the standard library that are needed and the seconds that are left."""

_LOG = 64 * 1024
_SPARE = 30.0
_MARGIN = 15.0
_OUTPUT = 4096 * MIB
_PROFILE = 512 * MIB
_LIST = '{{if not .ForTest}}{{.ImportPath}}\t{{.DepOnly}}\t{{.Standard}}\t{{with .Error}}{{printf "%q" .Err}}{{end}}{{end}}'
_DOWNLOAD = re.compile(
    r'(Get|Post) "?https?://|dial (tcp|udp)|no such host|i/o timeout|reading (https?|file)://|module lookup disabled'
    r"|unrecognized import path|git ls-remote|git fetch|terminal prompts disabled|verifying (module|go\.mod)|x509:|checksum"
)
_NEWER_GO = re.compile(r"requires go >= ?\S+ \(running|note: module requires Go|invalid go version")


@attrs.frozen(kw_only=True)
class GoTestRun:
    """A run of `go test`.

    `profile` is None where none was written. `flags` are those that the numbers depend on. `workspace`: with the go.work of the
    repository. `ended_early` says why it was ended where it did not end by itself. `log_tail` is the end of its log.
    """

    profile: Path | None
    packages: tuple[PackageResult, ...]
    go_version: str
    flags: tuple[str, ...]
    exit_code: int | None
    log_tail: str
    workspace: bool
    ended_early: str = ""


@attrs.frozen(kw_only=True)
class Plan:
    """What to run: a module, where its profile goes, flags (already checked), seconds for all of it.

    `job` and `cache` are directories (see `GoPlaces`); `workspace`: the go.work above the module is active. `cgo`: None leaves
    it to Go. `downloads`: how modules are fetched. `sandbox`: where all of it runs; the tests have the network of the host where
    there is none, or with `test_network`. `plant` may fill the cache beforehand.
    """

    module_dir: Path
    profile: Path
    job: Path
    cache: Path
    timeout: float
    test_args: tuple[str, ...] = ()
    go_flags: tuple[str, ...] = ()
    workspace: bool = False
    cgo: bool | None = None
    downloads: Downloads = attrs.field(factory=Downloads)
    sandbox: Sandbox = NONE
    test_network: bool = False
    plant: Plant | None = None
    limits: Limits = attrs.field(factory=lambda: Limits(memory=8192 * MIB, processes=8192))


async def run_tests(toolchain: Toolchain, plan: Plan, on_stage: OnStage, on_log: OnLog = no_log) -> GoTestRun:
    """Fetch the modules (stage `modules`), then run all tests of a module with coverage (stage `test`).

    Packages that do not build, fail, panic or take too long are told, not raised. A workspace that cannot be loaded is left
    aside. A little of `plan.timeout` is left for what follows. Raises GoError where nothing could be tested at all.
    """
    return await _Running(toolchain, plan, on_stage, on_log).run()


@attrs.frozen
class _Loaded:
    """What `go list` found: the module's packages, and what could not be downloaded."""

    finished: Finished
    packages: tuple[str, ...]
    standard: tuple[str, ...]
    not_downloaded: tuple[str, ...]

    @property
    def usable(self) -> bool:
        return self.finished.ok and bool(self.packages)

    @property
    def nothing_to_build(self) -> bool:
        """Whether build constraints leave no package over here, as in a module that only pins tools."""
        return self.finished.ok and not self.packages and not self.not_downloaded


class _Running:
    def __init__(self, toolchain: Toolchain, plan: Plan, on_stage: OnStage, on_log: OnLog) -> None:
        self._toolchain = toolchain
        self._plan = plan
        self._on_stage = on_stage
        self._on_log = on_log
        self._tail: deque[str] = deque()
        self._tail_size = 0

    async def run(self) -> GoTestRun:
        plan = self._plan
        await self._on_stage("modules")
        workspace = plan.workspace
        loaded = await self._load(plan.timeout, workspace=workspace)
        spent = loaded.finished.duration
        if workspace and not loaded.usable and not loaded.finished.timed_out:
            self._log(f"the workspace cannot be loaded ({_last_words(loaded.finished)}); without it:")
            workspace = False
            loaded = await self._load(plan.timeout - spent, workspace=workspace)
            spent += loaded.finished.duration
        if loaded.nothing_to_build:
            return self._untested(workspace=workspace)
        if not loaded.usable:
            raise _not_loaded(loaded)
        await self._on_stage("test")
        if plan.plant is not None:
            began = time.monotonic()
            await plan.plant(loaded.standard, plan.timeout - spent)
            spent += time.monotonic() - began
        return await self._test(loaded, plan.timeout - spent, workspace=workspace)

    def _untested(self, *, workspace: bool) -> GoTestRun:
        """The functions are there to be scored; no test of this platform reaches them."""
        self._log("no package is built on this platform: there is nothing to test")
        return GoTestRun(
            profile=None,
            packages=(),
            go_version=self._toolchain.version,
            flags=self._plan.go_flags,
            exit_code=0,
            log_tail="\n".join(self._tail),
            workspace=workspace,
            ended_early="",
        )

    async def _load(self, seconds: float, *, workspace: bool) -> _Loaded:
        """Load the packages and what their tests need, which downloads just that; a broken package is no error yet."""
        plan, output = self._plan, bytearray()
        finished = await self._go(
            ["list", "-e", "-deps", "-test", "-f", _LIST, "./..."],
            seconds,
            workspace=workspace,
            downloads=plan.downloads,
            on_stdout=output.extend,
        )
        finished = attrs.evolve(finished, output_tail=self._redacted(finished.output_tail))
        rows = [row.split("\t", 3) for row in bytes(output).decode(errors="replace").splitlines() if row.count("\t") == 3]
        listed = {path for path, only_needed, *_ in rows if only_needed == "false" and path != "./..."}
        errors = dict.fromkeys(self._redacted(error[1:-1].replace('\\"', '"')) for *_, error in rows if error)  # written with %q
        failures = [error for error in errors if _DOWNLOAD.search(error)]
        for failure in failures:
            self._log(failure)
        packages = tuple(
            sorted(path for path in listed if path.removesuffix(".test") not in listed or not path.endswith(".test"))
        )
        standard = tuple(path for path, _, is_standard, _ in rows if is_standard == "true")
        return _Loaded(finished, packages, standard, tuple(failures))

    async def _test(self, loaded: _Loaded, seconds: float, *, workspace: bool) -> GoTestRun:
        plan = self._plan
        seconds -= min(_SPARE, seconds / 10)
        flags, limit = _split_timeout(plan.test_args, seconds - min(_MARGIN, seconds / 10))
        events = GoTestEvents(loaded.packages, self._log)
        arguments = ["-json", "-vet=off", *flags, f"-timeout={limit}", f"-coverprofile={plan.profile}", "./..."]
        finished = await self._go(["test", *arguments], seconds, workspace=workspace, downloads=None, on_stdout=events.feed)
        ended_early = "" if finished.ended_by == "exit" else f"go test {finished.how()}"
        packages = events.results(ended_early=ended_early)
        if all(package.outcome == "build failed" for package in packages):
            raise _not_built(loaded, packages, finished)
        if ended_early and not any(package.tested for package in packages):
            raise GoError(f"{ended_early}, before a package was tested to its end")
        return GoTestRun(
            profile=_checked(plan.profile),
            packages=packages,
            go_version=self._toolchain.version,
            flags=(*plan.go_flags, "-vet=off", *flags),
            exit_code=finished.exit_code,
            log_tail="\n".join(self._tail),
            workspace=workspace,
            ended_early=ended_early,
        )

    async def _go(
        self,
        arguments: Sequence[str],
        seconds: float,
        *,
        workspace: bool,
        downloads: Downloads | None,
        on_stdout: Callable[[bytes], None],
    ) -> Finished:
        """Run go in the sandbox; with `downloads` it may fetch, and none of the repository's code runs."""
        plan = self._plan
        network = downloads is not None or plan.test_network or plan.sandbox.kind == "none"
        environment = go_environment(
            self._toolchain,
            GoPlaces(job=plan.job, cache=plan.cache),
            flags=plan.go_flags,
            workspace=workspace,
            downloads=downloads,
            network=network,
            cgo=plan.cgo,
        )
        lines = Lines(lambda line: self._log(self._redacted(line)) if downloads is not None else self._log(line))
        finished = await run(
            plan.sandbox.around([str(self._toolchain.go), *arguments], self._view(environment, network=network)),
            cwd=plan.module_dir,
            env=environment,
            timeout=max(seconds, 1.0),
            on_stdout=on_stdout,
            on_output=lines.feed,
            limits=attrs.evolve(plan.limits, output=_OUTPUT),
        )
        lines.end()
        return finished

    def _view(self, environment: Mapping[str, str], *, network: bool) -> View:
        plan = self._plan
        named = [environment[name] for name in (*TRUST, "NETRC") if name in environment]
        proxies = re.findall(r"file://([^,|]+)", environment.get("GOPROXY", ""))
        return View(
            cwd=plan.module_dir,
            scratch=plan.job,
            readable=[self._toolchain.go.parents[1], *map(Path, named), *map(Path, proxies)],
            writable=[plan.job, plan.cache],
            network=network,
        )

    def _redacted(self, text: str) -> str:
        secrets = self._plan.downloads.secrets()
        return redact(text, secrets) if secrets else text

    def _log(self, line: str) -> None:
        self._tail.append(line[:_LOG])
        self._tail_size += len(self._tail[-1]) + 1
        while self._tail_size > _LOG:
            self._tail_size -= len(self._tail.popleft()) + 1
        self._on_log(line)


def _split_timeout(arguments: Sequence[str], longest: float) -> tuple[tuple[str, ...], str]:
    """The other flags, and the value for -timeout: the one asked for, but not more than `longest` seconds."""
    rest = tuple(argument for argument in arguments if not argument.startswith("-timeout="))
    asked = [longest]
    for argument in arguments:
        if argument.startswith("-timeout="):
            try:
                asked.append(parse_duration(argument.removeprefix("-timeout=")))
            except BadInput as error:
                raise GoError(str(error), permanent=True) from error
    return rest, format_duration(max(1.0, min(asked)))


def _checked(profile: Path) -> Path | None:
    """The profile, if one was written that has a block in it. A test can put anything in its place."""
    if profile.is_symlink() or not profile.is_file():
        return None
    if profile.stat().st_size > _PROFILE:
        raise GoError(f"the coverage profile is larger than {_PROFILE // MIB} MiB", permanent=True)
    with profile.open("rb") as file:
        return profile if file.readline().startswith(b"mode:") and file.read(1) else None


def _not_loaded(loaded: _Loaded) -> GoError:
    said = _last_words(loaded.finished)
    if loaded.finished.ended_by != "exit":
        return GoError(f"the modules could not be loaded: go list {loaded.finished.how()}")
    if loaded.not_downloaded:
        return GoError(f"module download failed: {loaded.not_downloaded[0][:REASON]}")
    if _DOWNLOAD.search(loaded.finished.output_tail):
        return GoError(f"module download failed: {said}")
    if _NEWER_GO.search(loaded.finished.output_tail):
        return GoError(f"the module needs a newer Go than the worker has: {said}", permanent=True)
    return GoError(f"the module cannot be loaded: {said}", permanent=True)


def _not_built(loaded: _Loaded, packages: Sequence[PackageResult], finished: Finished) -> GoError:
    if loaded.not_downloaded:
        return GoError(f"module download failed: {loaded.not_downloaded[0][:REASON]}")
    why = next((f"{package.path}: {package.reason}" for package in packages if package.reason), _last_words(finished))
    return GoError(f"no package could be built: {why}", permanent=True)


def _last_words(finished: Finished, count: int = 3) -> str:
    lines = [line.strip() for line in finished.output_tail.splitlines() if line.strip() and "go: downloading " not in line]
    return "; ".join(lines[-count:])[-REASON:] or f"go {finished.how()}"
