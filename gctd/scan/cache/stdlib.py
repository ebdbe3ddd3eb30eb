"""Go's build of its standard library, as the first content of a repository's build cache.

Each repository has a private build cache: Go does not check the content of a cache, and a build passes the repository's input to
a C compiler. No file of one repository is ever used for another. Most of Go's builds for a first scan are its standard library.
This module builds it from Go's installation alone, in a cache that only this module writes to and that no sandbox shows. Each
new scan adds the missing packages. A new cache gets a copy, and no hard links. If the file system supports it, the copies share
their blocks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import attrs
import structlog

from gctd.scan.cache.lru import LruDirectory
from gctd.scan.disk import MIB
from gctd.scan.errors import ScanError
from gctd.scan.go.coverage_run.plan import BeginStage
from gctd.scan.go.coverage_run.progress import PackageCount
from gctd.scan.go.toolchain import GoPlaces, Toolchain, go_environment
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.output import Lines
from gctd.scan.isolation.process import Limits, run
from gctd.scan.isolation.removal import remove

_NAME = re.compile(r"[a-z0-9]+(/[a-z0-9]+)*")
_WITH_COVERAGE = ("internal/coverage/cfile", "runtime/coverage", "testing/internal/testdeps")
_MISSING = "{{if .Stale}}{{.ImportPath}}{{end}}"
_MATTER = ("-race", "-trimpath")
_LONGEST = 600.0
_LIMITS = Limits(memory=8192 * MIB)
_NOTHING_LEFT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}

_log = structlog.get_logger(__name__)


async def _not_followed() -> PackageCount:
    return PackageCount(())


@attrs.frozen
class StdlibBuildCache:
    """The built standard library of a toolchain, in the directory of builds; one for each set of flags that matters."""

    directory: LruDirectory
    toolchain: Toolchain

    async def restore(
        self,
        packages: Iterable[str],
        into: Path,
        job: Path,
        *,
        flags: Sequence[str],
        seconds: float,
        begin: BeginStage = _not_followed,
    ) -> None:
        """Fill the caches of a repository with the build of these packages of the standard library, at its first scan.

        `into` is the directory of the repository's caches (see `GoCaches`). `job` is the job's folder. `flags` are the flags for
        go. On failure, Go builds the packages itself during the scan. `begin` is called at the first scan only.
        """
        restored = into / "restored"
        if restored.exists():
            return
        count = await begin()
        async with locked(self.directory.lock(into.name)):
            if restored.exists():
                return
            try:
                await self._restore(sorted(set(packages)), into, job, flags, seconds, count)
            except (ScanError, OSError) as error:
                _log.warning("a build cache was not begun with the standard library", reason=str(error))
            restored.touch()

    def name(self, flags: Iterable[str] = ()) -> str:
        """Return the directory name of a build with these flags."""
        described = f"{self.toolchain.go}\n{self.toolchain.version}\n{' '.join(flags)}"
        return f"std-{sha256(described.encode()).hexdigest()[:16]}"

    async def _restore(
        self, packages: Sequence[str], into: Path, job: Path, flags: Sequence[str], seconds: float, count: PackageCount
    ) -> None:
        flags = [flag for flag in flags if flag in _MATTER]
        name, copy = self.name(flags), into / "build.new"
        await remove(copy)
        async with self.directory.using(name) as seed:
            async with locked(self.directory.lock(name)):
                await self._build(packages, seed, job / "std", flags, min(seconds / 2, _LONGEST), count)
            async with locked(self.directory.lock(name), shared=True):
                command = ["cp", "-R", "--", str(seed / "build"), str(copy)]
                copied = await run(command, cwd=into, env=_NOTHING_LEFT, timeout=_LONGEST)
        if copied.ok:
            await asyncio.to_thread(_merge, copy, into / "build")
        await remove(copy)
        if not copied.ok:
            raise ScanError(f"cp {copied.how()}: {copied.output_tail.strip()[-300:]}")

    async def _build(
        self, packages: Sequence[str], seed: Path, job: Path, flags: Sequence[str], seconds: float, count: PackageCount
    ) -> None:
        """Build what is missing: packages, and the program that reports on packages without tests."""
        named = [path for path in packages if _NAME.fullmatch(path) and not {"internal", "vendor"} & set(path.split("/"))]
        places = GoPlaces(own=job, build=seed / "build", modules=seed / "modules")
        environment = go_environment(self.toolchain, places, flags=flags, network=False)
        here = job / "module"
        here.mkdir()
        (here / "go.mod").write_text("module std.invalid\n")
        go, wanted = str(self.toolchain.go), [*named, *_WITH_COVERAGE]
        missing = bytearray()
        listing = [go, "list", "-deps", "-f", _MISSING, "--", *wanted]
        await run(listing, cwd=here, env=environment, timeout=seconds, limits=_LIMITS, on_stdout=missing.extend)
        count.expect(missing.decode().split())
        for arguments in (["build", "-v", "--", *wanted], ["tool", "covdata", "help"]):
            built = Lines(count.ended)  # -v: the name of each package that is built
            done = await run([go, *arguments], cwd=here, env=environment, timeout=seconds, limits=_LIMITS, on_output=built.feed)
            if arguments[0] == "build" and not done.ok:
                last = done.output_tail.strip().rpartition("\n")[2][:300]
                _log.warning("the standard library was not built beforehand", reason=f"go {done.how()}: {last}")


def _merge(copy: Path, target: Path) -> None:
    """Move the files of one build cache into another, each as a whole, if there is none; Go may be at work there.

    A build cache has one level of directories.
    """
    target.mkdir(parents=True, exist_ok=True)
    for entry in list(copy.iterdir()):
        there = target / entry.name
        if not entry.is_dir():
            _move(entry, there)
            continue
        there.mkdir(exist_ok=True)
        for file in list(entry.iterdir()):
            _move(file, there / file.name)


def _move(file: Path, to: Path) -> None:
    if not to.exists():
        file.rename(to)
