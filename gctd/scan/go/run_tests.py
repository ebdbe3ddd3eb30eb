"""Running a project's tests with coverage, and the outcome of each package.

The run has three steps with fewer and fewer rights. A step never reads files that a step with fewer rights can write.

- modules: the network and the operator's credentials; runs no code of the repository. Writes the module cache.
- build: no network; compiles, and runs no compiled program. Writes the build cache.
- test: no network; runs the repository's code. Writes a copy of the checkout, its own HOME and TMPDIR, and the profile, which is
  read from a descriptor that was opened before. All of that is thrown away afterwards.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.repo.options import covers_others, format_duration, parse_duration
from gctd.engines.golang.constraints import Platform
from gctd.engines.measurement import Scope
from gctd.scan.errors import GoError, NeedsNewerGo, UnsafeFile
from gctd.scan.git.messages import redact
from gctd.scan.go import building
from gctd.scan.go.built import is_recent, mark
from gctd.scan.go.events import REASON, GoTestEvents, PackageResult
from gctd.scan.go.progress import Following, OnProgress, PackageCount, during, no_progress
from gctd.scan.go.steps import Rights, Step
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain
from gctd.scan.isolation.files import OwnFile, new_file
from gctd.scan.isolation.output import Lines, OnLog, no_log
from gctd.scan.isolation.process import MIB, Finished, Limits, run
from gctd.scan.isolation.sandbox import NONE, Sandbox

OnStage = Callable[[str], Awaitable[None]]
Restore = Callable[[Sequence[str], float], Awaitable[None]]
"""Called before anything is built, with the packages of the standard library that are needed and the seconds that are left."""

_LOG = 64 * 1024
_BRIEF = 60.0
_OF_THE_RUN = frozenset({"-count", "-failfast", "-parallel", "-run", "-short", "-shuffle", "-skip", "-timeout", "-v"})
"""Flags of go test that have no effect on the build."""
_SPARE = 30.0
_MARGIN = 15.0
_OUTPUT = 4096 * MIB
_PROFILE = 512 * MIB
_LIST = '{{if not .ForTest}}{{.ImportPath}}\t{{.DepOnly}}\t{{.Standard}}\t{{with .Error}}{{printf "%q" .Err}}{{end}}{{end}}'
_CONTEXT = (
    '{{with context}}{{.GOOS}}\t{{.GOARCH}}\t{{.CgoEnabled}}\t{{join .BuildTags " "}}\t{{join .ToolTags " "}}'
    '\t{{join .ReleaseTags " "}}{{end}}'
)
_DOWNLOAD = re.compile(
    r'(Get|Post) "?https?://|dial (tcp|udp)|no such host|i/o timeout|reading (https?|file)://|module lookup disabled'
    r"|unrecognized import path|git ls-remote|git fetch|terminal prompts disabled|verifying (module|go\.mod)|x509:|checksum"
)
_NEWER_GO = re.compile(r"requires go >= ?(?P<version>[0-9][0-9a-z.]*)\S* \(running|note: module requires Go|invalid go version")


@attrs.frozen(kw_only=True)
class GoTestRun:
    """A run of `go test`.

    `profile` is the text of the coverage profile, None if there is none. The numbers depend on `flags`. `workspace`: with the
    go.work of the repository. `ended_early` is the reason if the run was ended. `log_tail` is the end of its log. `platform` is
    the target of the build, None if go did not report it.
    """

    profile: bytes | None
    packages: tuple[PackageResult, ...]
    go_version: str
    flags: tuple[str, ...]
    exit_code: int | None
    log_tail: str
    workspace: bool
    ended_early: str = ""
    platform: Platform | None = None

    @property
    def scope(self) -> Scope:
        """The tests that count for a package."""
        return "module" if covers_others(self.flags) else "own"


@attrs.frozen(kw_only=True)
class Plan:
    """Input of a test run: a module of a checkout, flags (already checked), and `timeout` in seconds for the whole run.

    `source` is the checkout, `project` the module's directory in it; a sandbox never writes it. `commit` is the commit of the
    checkout: a commit is built once, unless it is empty. `job` is the job's folder. `workspace`: the go.work above the module is
    active. `cgo`: None leaves the choice to Go. `downloads`: the download of modules. `sandbox`: the sandbox of all steps.
    Without a sandbox, or with `test_network`, the tests have the network of the host. `restore` may fill the build cache
    beforehand.
    """

    source: Path
    project: str
    job: Path
    caches: GoCaches
    timeout: float
    test_args: tuple[str, ...] = ()
    go_flags: tuple[str, ...] = ()
    workspace: bool = False
    cgo: bool | None = None
    downloads: Downloads = attrs.field(factory=Downloads)
    sandbox: Sandbox = NONE
    test_network: bool = False
    restore: Restore | None = None
    commit: str = ""
    limits: Limits = attrs.field(factory=lambda: Limits(memory=8192 * MIB, processes=8192))

    @property
    def module_dir(self) -> Path:
        """The directory of the module."""
        return self.source / self.project


async def run_tests(
    toolchain: Toolchain,
    plan: Plan,
    on_stage: OnStage,
    on_log: OnLog = no_log,
    on_progress: OnProgress = no_progress,
) -> GoTestRun:
    """Fetch the modules (stage `modules`), then run all tests of a module with coverage (stage `test`).

    Packages that do not build, fail, panic or time out are reported in the result, not raised. If a workspace cannot be loaded,
    the run continues without it. A little of `plan.timeout` is left for the engine. Raises NeedsNewerGo. Raises GoError if no
    package could be tested.
    """
    return await _Running(toolchain, plan, on_stage, on_log, on_progress).run()


@attrs.frozen
class _Loaded:
    """Result of `go list`: the module's packages, and the modules that could not be downloaded."""

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
    def __init__(self, toolchain: Toolchain, plan: Plan, on_stage: OnStage, on_log: OnLog, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._toolchain = toolchain
        self._plan = plan
        self._on_stage = on_stage
        self._on_log = on_log
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._rights = Rights(
            toolchain=toolchain,
            source=plan.source,
            module_dir=plan.module_dir,
            place=Path(tempfile.mkdtemp(prefix="run-", dir=plan.job)),
            caches=plan.caches,
            flags=plan.go_flags,
            cgo=plan.cgo,
            downloads=plan.downloads,
            confined=plan.sandbox.kind != "none",
            mounts=plan.sandbox.has_mounts,
            test_network=plan.test_network,
        )

    async def run(self) -> GoTestRun:
        plan = self._plan
        await self._on_stage("modules")
        await self._rights.prepare()
        workspace = plan.workspace
        loaded = await self._load(plan.timeout, workspace=workspace)
        spent = loaded.finished.duration
        _require_go(loaded)
        if workspace and not loaded.usable and not loaded.finished.timed_out:
            self._log(f"the workspace cannot be loaded ({_last_words(loaded.finished)}); without it:")
            workspace = False
            loaded = await self._load(plan.timeout - spent, workspace=workspace)
            spent += loaded.finished.duration
            _require_go(loaded)
        if loaded.nothing_to_build:
            return attrs.evolve(self._untested(workspace=workspace), platform=await self._platform(workspace=workspace))
        if not loaded.usable:
            raise _not_loaded(loaded)
        await self._on_stage("test")
        if plan.restore is not None:
            began = time.monotonic()
            async with during(Following(PackageCount(()), "preparing the standard library", self._log, no_progress).run()):
                await plan.restore(loaded.standard, plan.timeout - spent)
            spent += time.monotonic() - began
        platform = await self._platform(workspace=workspace)
        return attrs.evolve(await self._test(loaded, plan.timeout - spent, workspace=workspace), platform=platform)

    def _untested(self, *, workspace: bool) -> GoTestRun:
        """Return a run without coverage: the functions can be scored, but no test of this platform reaches them."""
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

    async def _platform(self, *, workspace: bool) -> Platform | None:
        """Return the platform of go's builds, with the tags that the tests have."""
        output = bytearray()
        tags = [flag for flag in self._plan.test_args if flag.startswith("-tags=")]
        arguments = ["list", *tags, "-f", _CONTEXT, "unsafe"]
        finished = await self._go(arguments, _BRIEF, self._rights.build(workspace=workspace), on_stdout=output.extend)
        found = bytes(output).decode(errors="replace").rstrip("\n").split("\t")
        if not finished.ok or len(found) != 6:
            self._log(f"go does not report its platform: it {finished.how()}")
            return None
        goos, goarch, cgo, *tagged = found
        return Platform(goos=goos, goarch=goarch, cgo=cgo == "true", tags=tuple(" ".join(tagged).split()))

    async def _load(self, seconds: float, *, workspace: bool) -> _Loaded:
        """Load the packages and the dependencies of their tests. Loading downloads them.

        A broken package is not an error at this stage.
        """
        output = bytearray()
        finished = await self._go(
            ["list", "-e", "-deps", "-test", "-f", _LIST, "./..."],
            seconds,
            self._rights.modules(workspace=workspace),
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
        began, broken, patterns = time.monotonic(), tuple[PackageResult, ...](), ["./..."]
        listed = loaded.packages
        if covers_others((*plan.go_flags, *plan.test_args)):
            broken = await self._not_built(seconds, workspace=workspace)
            listed = tuple(path for path in listed if path not in {one.path for one in broken})
            patterns = list(listed) if broken else patterns
        if not listed:
            raise _not_built(loaded, broken, loaded.finished)
        await self._build(listed, patterns, seconds - (time.monotonic() - began), workspace=workspace)
        seconds -= time.monotonic() - began
        flags, limit = _split_timeout(plan.test_args, seconds - min(_MARGIN, seconds / 10))
        count = PackageCount(listed)
        following = Following(count, "tested", self._log, self._on_progress)
        events = GoTestEvents(listed, following.spoke, count)
        with new_file(self._rights.profile) as profile:
            step = self._rights.test(workspace=workspace)
            arguments = ["-json", "-vet=off", *flags, f"-timeout={limit}", f"-coverprofile={self._rights.profile}", *patterns]
            async with during(following.run()):
                finished = await self._go(["test", *arguments], seconds, step, on_stdout=events.feed)
            written = await asyncio.to_thread(_checked, profile)
        ended_early = "" if finished.ended_by == "exit" else f"go test {finished.how()}"
        packages = tuple(sorted((*events.results(ended_early=ended_early), *broken), key=lambda one: one.path))
        if all(package.outcome == "build failed" for package in packages):
            raise _not_built(loaded, packages, finished)
        if ended_early and not any(package.tested for package in packages):
            raise GoError(f"{ended_early}, before a package was tested to its end")
        return GoTestRun(
            profile=written,
            packages=packages,
            go_version=self._toolchain.version,
            flags=(*plan.go_flags, "-vet=off", *flags),
            exit_code=finished.exit_code,
            log_tail="\n".join(self._tail),
            workspace=workspace,
            ended_early=ended_early,
        )

    async def _not_built(self, seconds: float, *, workspace: bool) -> tuple[PackageResult, ...]:
        """The packages whose tests do not build; none if go cannot list them."""
        output = bytearray()
        arguments = [*building.ARGUMENTS, *building.flags_of_build(self._plan.test_args), "./..."]
        finished = await self._go(arguments, seconds, self._rights.build(workspace=workspace), on_stdout=output.extend)
        if finished.ended_by != "exit":
            raise GoError(f"the packages could not be built: go list {finished.how()}")
        if not finished.ok:
            self._log(f"the packages that do not build are not known: go list {finished.how()}")
            return ()
        found = building.broken_packages(bytes(output).decode(errors="replace"))
        for one in found:
            self._log(f"{one.path} does not build and is not tested: {one.reason}")
        return found

    async def _build(self, packages: Sequence[str], patterns: Sequence[str], seconds: float, *, workspace: bool) -> None:
        """Compile all that the tests need into the build cache, which the tests cannot write.

        A package that does not build is an error of the test run, which says more about it.
        """
        if self._plan.sandbox.kind == "none":  # the caches can be written by tests in any case
            return
        flags = [flag for flag in self._plan.test_args if flag.partition("=")[0] not in _OF_THE_RUN]
        arguments = ["test", "-exec=true", "-vet=off", *flags, "-coverprofile=/dev/null", *patterns]
        built = self._built(arguments, workspace=workspace)
        if built is not None and is_recent(built):
            return
        count = PackageCount(packages)
        lines = Lines(count.line)
        self._log(f"building the tests of {len(packages)} packages")
        async with during(Following(count, "built", self._log, no_progress).run()):
            step = self._rights.build(workspace=workspace)
            finished = await self._go(arguments, seconds, step, on_stdout=lines.feed, logged=False)
        if finished.ended_by != "exit":
            raise GoError(f"the tests could not be built: go test {finished.how()}")
        if built is not None and finished.ok:
            mark(built)

    def _built(self, arguments: Sequence[str], *, workspace: bool) -> Path | None:
        """Return the file that marks this as built; None if the commit is unknown."""
        plan = self._plan
        if not plan.commit:
            return None
        toolchain = (self._toolchain.go, self._toolchain.version)
        key = "\0".join(map(str, (plan.commit, plan.project, *toolchain, workspace, plan.cgo, *plan.go_flags, "", *arguments)))
        return plan.caches.built / sha256(key.encode()).hexdigest()

    async def _go(
        self,
        arguments: Sequence[str],
        seconds: float,
        step: Step,
        *,
        on_stdout: Callable[[bytes], None],
        logged: bool = True,
    ) -> Finished:
        """Run go in the sandbox, as a step."""
        plan = self._plan
        lines = Lines(self._log if not step.credentials else lambda line: self._log(self._redacted(line)))
        finished = await run(
            plan.sandbox.around([str(self._toolchain.go), *arguments], step.view),
            cwd=plan.module_dir,
            env=step.environment,
            timeout=max(seconds, 1.0),
            on_stdout=on_stdout,
            on_output=lines.feed if logged else None,
            limits=attrs.evolve(plan.limits, output=_OUTPUT),
            inputs=plan.sandbox.inputs,
            files=plan.sandbox.files(step.view),
            groups=plan.sandbox.groups,
        )
        lines.end()
        return finished

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
    """Return the other flags, and the value for -timeout: the given one, but at most `longest` seconds."""
    rest = tuple(argument for argument in arguments if not argument.startswith("-timeout="))
    asked = [longest]
    for argument in arguments:
        if argument.startswith("-timeout="):
            try:
                asked.append(parse_duration(argument.removeprefix("-timeout=")))
            except BadInput as error:
                raise GoError(str(error), permanent=True) from error
    return rest, format_duration(max(1.0, min(asked)))


def _checked(profile: OwnFile) -> bytes | None:
    """The profile, if one was written that has a block in it. A test can write anything."""
    try:
        text = profile.read(_PROFILE)
    except UnsafeFile as error:
        raise GoError(f"the coverage profile cannot be read: {error}", permanent=True) from error
    first, _, blocks = text.partition(b"\n")
    return text if first.startswith(b"mode:") and blocks else None


def _require_go(loaded: _Loaded) -> None:
    """Raise NeedsNewerGo if go names the version that the module, a dependency or the workspace needs."""
    found = _NEWER_GO.search(loaded.finished.output_tail) if not loaded.finished.ok else None
    if found is not None and found["version"]:
        reason = f"the module needs a newer Go than the worker has: {_last_words(loaded.finished)}"
        raise NeedsNewerGo(reason, found["version"])


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
