"""Running a project's tests with coverage, and the outcome of each package.

The run has three steps with fewer and fewer rights. A step never reads files that a step with fewer rights can write.

- modules: the network and the operator's credentials; runs no code of the repository. Writes the module cache.
- build: no network; compiles, and runs no compiled program. Writes the build cache.
- test: no network; runs the repository's code. Writes a copy of the checkout, its own HOME and TMPDIR, and the profile, which is
  read from a descriptor that was opened before. All of that is thrown away afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

import attrs

from eventlog import during
from gctd.domain.errors import BadInput
from gctd.domain.options import covers_others, format_duration, parse_duration
from gctd.scan.disk import MIB
from gctd.scan.errors import GoError, UnsafeFile
from gctd.scan.go.coverage_run import building
from gctd.scan.go.coverage_run.built import is_recent, mark, may_be_indexed
from gctd.scan.go.coverage_run.commands import GoCommands
from gctd.scan.go.coverage_run.events import GoTestEvents, PackageResult
from gctd.scan.go.coverage_run.loading import PackageListing, download_failed, last_words, load, not_loaded
from gctd.scan.go.coverage_run.plan import GoTestRun, NothingBuilt, Plan, Restore
from gctd.scan.go.coverage_run.progress import Following, OnProgress, PackageCount, no_progress
from gctd.scan.go.coverage_run.steps import Rights
from gctd.scan.go.toolchain import Toolchain
from gctd.scan.isolation.files import OwnFile, new_file
from gctd.scan.isolation.output import Lines, OnLog, no_log
from gctd.scan.isolation.process import Finished

OnStage = Callable[[str], Awaitable[None]]
_OF_THE_RUN = frozenset({"-count", "-failfast", "-parallel", "-run", "-short", "-shuffle", "-skip", "-timeout", "-v"})
"""Flags of go test that have no effect on the build."""
_SPARE = 30.0
_MARGIN = 15.0
_PROFILE = 512 * MIB


async def run_tests(
    toolchain: Toolchain,
    plan: Plan,
    on_stage: OnStage,
    on_log: OnLog = no_log,
    on_progress: OnProgress = no_progress,
) -> GoTestRun:
    """Fetch the modules (stage `modules`), then run all tests of a module with coverage (stage `test`).

    In between, the stage `stdlib` is the preparation of Go's standard library, if it is needed. `on_progress` gets the progress
    of the present stage.

    Packages that do not build, fail, panic or time out are reported in the result, not raised. If a workspace cannot be loaded,
    the run continues without it. A little of `plan.timeout` is left for the engine. Raises NeedsNewerGo. Raises NothingBuilt if
    no package can be built, and another GoError if no package could be tested, or if a module could not be downloaded now.
    """
    return await _TestRun(toolchain, plan, on_stage, on_log, on_progress).run()


class _TestRun:
    def __init__(self, toolchain: Toolchain, plan: Plan, on_stage: OnStage, on_log: OnLog, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._toolchain = toolchain
        self._plan = plan
        self._on_stage = on_stage
        self._commands = GoCommands(toolchain, plan, on_log)
        self._rights = Rights(
            toolchain=toolchain,
            plan=plan,
            place=Path(tempfile.mkdtemp(prefix="run-", dir=plan.job)),
            index=plan.sandbox.kind != "none" and bool(plan.commit) and may_be_indexed(plan.module_dir / "go.mod"),
        )

    async def run(self) -> GoTestRun:
        plan = self._plan
        await self._on_stage("modules")
        await self._rights.prepare()
        loaded = await load(self._commands, self._rights, plan.timeout)
        spent = loaded.finished.duration
        if plan.workspace and not loaded.usable and not loaded.finished.timed_out:
            self._commands.log(f"the workspace cannot be loaded ({last_words(loaded.finished)}); without it:")
            plan = self._plan = attrs.evolve(plan, workspace=False)
            self._rights = attrs.evolve(self._rights, plan=plan)
            loaded = await load(self._commands, self._rights, plan.timeout - spent)
            spent += loaded.finished.duration
        if loaded.nothing_to_build:
            # The functions can be scored, but no test of this platform reaches them.
            self._commands.log("no package is built on this platform: there is nothing to test")
            return self._result(loaded, None, ())
        if not loaded.usable:
            raise not_loaded(loaded)
        if plan.restore is not None:
            began = time.monotonic()
            await self._prepare_library(plan.restore, loaded.standard, plan.timeout - spent)
            spent += time.monotonic() - began
        await self._on_stage("test")
        return await self._test(loaded, plan.timeout - spent)

    async def _prepare_library(self, restore: Restore, packages: Sequence[str], seconds: float) -> None:
        count = PackageCount(())

        async def begin() -> PackageCount:
            await self._on_stage("stdlib")
            return count

        async with during(Following(count, "preparing the standard library", self._commands.log, self._on_progress).run()):
            await restore(packages, seconds, begin)

    def _result(self, loaded: PackageListing, profile: bytes | None, packages: tuple[PackageResult, ...]) -> GoTestRun:
        flags = ("-vet=off", *_without_timeout(self._plan.test_args)) if packages else ()
        return GoTestRun(
            profile=profile,
            packages=packages,
            go_version=self._toolchain.version,
            flags=(*self._plan.go_flags, *flags),
            workspace=self._plan.workspace,
            platform=loaded.platform,
            repeatable=not loaded.not_downloaded and all(one.outcome not in ("timed out", "killed") for one in packages),
        )

    async def _test(self, loaded: PackageListing, seconds: float) -> GoTestRun:
        plan = self._plan
        seconds -= min(_SPARE, seconds / 10)
        began, broken, patterns = time.monotonic(), tuple[PackageResult, ...](), ["./..."]
        listed = loaded.packages
        if covers_others((*plan.go_flags, *plan.test_args)):
            broken = await self._not_built(loaded, seconds)
            listed = tuple(path for path in listed if path not in {one.path for one in broken})
            patterns = list(listed) if broken else patterns
        if not listed:
            raise self._nothing_built(loaded, broken, loaded.finished)
        built = await self._build(listed, patterns, seconds - (time.monotonic() - began))
        seconds -= time.monotonic() - began
        flags, limit = _split_timeout(plan.test_args, seconds - min(_MARGIN, seconds / 10))
        count = PackageCount(listed)
        following = Following(count, "tested", self._commands.log, self._on_progress)
        events = GoTestEvents(listed, following.spoke, count)
        with new_file(self._rights.profile) as profile:
            arguments = [
                *self._rights.test_flags,
                "-json",
                "-vet=off",
                "-count=1",  # otherwise go may give the result of an earlier run; a count among the flags replaces it
                *flags,
                f"-timeout={limit}",
                f"-coverprofile={self._rights.profile}",
                *patterns,
            ]
            async with during(following.run()):
                finished = await self._commands.run(["test", *arguments], seconds, self._rights.test(), on_stdout=events.feed)
            written = await asyncio.to_thread(_checked, profile)
        self._require_build(events, built)
        ended_early = "" if finished.ended_by == "exit" else f"go test {finished.how()}"
        results = map(loaded.explained, events.results(ended_early=ended_early))
        packages = tuple(sorted((*results, *broken), key=lambda one: one.path))
        if all(package.outcome == "build failed" for package in packages):
            raise self._nothing_built(loaded, packages, finished)
        if ended_early and not any(package.tested for package in packages):
            raise GoError(f"{ended_early}, before a package was tested to its end")
        return self._result(loaded, written, packages)

    def _nothing_built(self, loaded: PackageListing, packages: tuple[PackageResult, ...], finished: Finished) -> GoError:
        if loaded.not_downloaded:
            return download_failed(loaded.not_downloaded[0])
        why = next((f"{package.path}: {package.reason}" for package in packages if package.reason), last_words(finished))
        return NothingBuilt(f"no package could be built: {why}", self._result(loaded, None, packages))

    async def _not_built(self, loaded: PackageListing, seconds: float) -> tuple[PackageResult, ...]:
        """The packages whose tests do not build; none if go cannot list them."""
        output = bytearray()
        arguments = [*building.ARGUMENTS, *building.flags_of_build(self._plan.test_args), "./..."]
        finished = await self._commands.run(arguments, seconds, self._rights.build(), on_stdout=output.extend)
        if finished.ended_by != "exit":
            raise GoError(f"the packages could not be built: go list {finished.how()}")
        if not finished.ok:
            self._commands.log(f"the packages that do not build are not known: go list {finished.how()}")
            return ()
        found = tuple(map(loaded.explained, building.broken_packages(bytes(output).decode(errors="replace"))))
        for one in found:
            self._commands.log(f"{one.path} does not build and is not tested: {one.reason}")
        return found

    async def _build(self, packages: Sequence[str], patterns: Sequence[str], seconds: float) -> Path | None:
        """Compile all that the tests need into the build cache, which the tests cannot write. Return the file that marks this.

        A package that does not build is an error of the test run, which says more about it.
        """
        if self._plan.sandbox.kind == "none":  # the caches can be written by tests in any case
            return None
        flags = [flag for flag in self._plan.test_args if flag.partition("=")[0] not in _OF_THE_RUN]
        arguments = ["test", "-exec=true", "-vet=off", *flags, "-coverprofile=/dev/null", *patterns]
        built = self._built(arguments)
        if built is not None and is_recent(built):
            return built
        count = PackageCount(packages)
        lines = Lines(count.line)
        self._commands.log(f"building the tests of {len(packages)} packages")
        async with during(Following(count, "built", self._commands.log, no_progress).run()):
            finished = await self._commands.run(arguments, seconds, self._rights.build(), on_stdout=lines.feed, logged=False)
        if finished.ended_by != "exit":
            raise GoError(f"the tests could not be built: go test {finished.how()}")
        if built is not None and finished.ok:
            mark(built)
        return built

    def _require_build(self, events: GoTestEvents, built: Path | None) -> None:
        """Raise GoError if go could not read its build. The next attempt then builds the packages."""
        problem = events.error_of_build(f"open {self._plan.caches.build}")
        if problem and built is not None:
            built.unlink(missing_ok=True)
            raise GoError(f"the build cache is not complete ({problem}); the next attempt builds the packages")

    def _built(self, arguments: Sequence[str]) -> Path | None:
        """Return the file that marks this as built; None if the commit is unknown."""
        plan = self._plan
        if not plan.commit:
            return None
        toolchain = (self._toolchain.go, self._toolchain.version)
        place = (plan.commit, plan.source, plan.project, self._rights.index)
        key = "\0".join(map(str, (*place, *toolchain, plan.workspace, plan.cgo, *plan.go_flags, "", *arguments)))
        return plan.caches.built / sha256(key.encode()).hexdigest()


def _split_timeout(arguments: Sequence[str], longest: float) -> tuple[tuple[str, ...], str]:
    """Return the other flags, and the value for -timeout: the given one, but at most `longest` seconds."""
    asked = [longest]
    for argument in arguments:
        if argument.startswith("-timeout="):
            try:
                asked.append(parse_duration(argument.removeprefix("-timeout=")))
            except BadInput as error:
                raise GoError(str(error), permanent=True) from error
    return _without_timeout(arguments), format_duration(max(1.0, min(asked)))


def _without_timeout(arguments: Sequence[str]) -> tuple[str, ...]:
    return tuple(argument for argument in arguments if not argument.startswith("-timeout="))


def _checked(profile: OwnFile) -> bytes | None:
    """The profile, if one was written that has a block in it. A test can write anything."""
    try:
        text = profile.read(_PROFILE)
    except UnsafeFile as error:
        raise GoError(f"the coverage profile cannot be read: {error}", permanent=True) from error
    first, _, blocks = text.partition(b"\n")
    return text if first.startswith(b"mode:") and blocks else None
