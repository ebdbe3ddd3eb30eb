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
from gctd.scan.errors import ScanError
from gctd.scan.go.toolchain import GoPlaces, Toolchain, go_environment
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.process import MIB, Limits, run
from gctd.scan.isolation.removal import remove

_NAME = re.compile(r"[a-z0-9]+(/[a-z0-9]+)*")
_WITH_COVERAGE = ("internal/coverage/cfile", "runtime/coverage", "testing/internal/testdeps")
_MATTER = ("-race", "-trimpath")
_LONGEST = 600.0
_LIMITS = Limits(memory=8192 * MIB)
_NOTHING_LEFT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}

_log = structlog.get_logger(__name__)


@attrs.frozen
class StdlibBuildCache:
    """The built standard library of a toolchain, in the directory of builds; one for each set of flags that matters."""

    directory: LruDirectory
    toolchain: Toolchain

    async def restore(self, packages: Iterable[str], into: Path, job: Path, *, flags: Sequence[str], seconds: float) -> None:
        """Fill the caches of a repository with the build of these packages of the standard library, at its first scan.

        `into` is the directory of the repository's caches (see `GoCaches`). `job` is the job's folder. `flags` are the flags for
        go. On failure, Go builds the packages itself during the scan.
        """
        restored = into / "restored"
        async with locked(self.directory.lock(into.name)):
            if restored.exists():
                return
            try:
                await self._restore(sorted(set(packages)), into, job, flags, seconds)
            except (ScanError, OSError) as error:
                _log.warning("a build cache was not begun with the standard library", reason=str(error))
            restored.touch()

    def name(self, flags: Iterable[str] = ()) -> str:
        """Return the directory name of a build with these flags."""
        described = f"{self.toolchain.go}\n{self.toolchain.version}\n{' '.join(flags)}"
        return f"std-{sha256(described.encode()).hexdigest()[:16]}"

    async def _restore(self, packages: Sequence[str], into: Path, job: Path, flags: Sequence[str], seconds: float) -> None:
        flags = [flag for flag in flags if flag in _MATTER]
        name, copy = self.name(flags), into / "build.new"
        await remove(copy)
        async with self.directory.using(name) as seed:
            async with locked(self.directory.lock(name)):
                await self._build(packages, seed, job / "std", flags, min(seconds / 2, _LONGEST))
            async with locked(self.directory.lock(name), shared=True):
                command = ["cp", "-R", "--", str(seed / "build"), str(copy)]
                copied = await run(command, cwd=into, env=_NOTHING_LEFT, timeout=_LONGEST)
        if copied.ok:
            await asyncio.to_thread(_merge, copy, into / "build")
        await remove(copy)
        if not copied.ok:
            raise ScanError(f"cp {copied.how()}: {copied.output_tail.strip()[-300:]}")

    async def _build(self, packages: Sequence[str], seed: Path, job: Path, flags: Sequence[str], seconds: float) -> None:
        """Build what is missing: packages, and the program that reports on packages without tests."""
        named = [path for path in packages if _NAME.fullmatch(path) and not {"internal", "vendor"} & set(path.split("/"))]
        places = GoPlaces(own=job, build=seed / "build", modules=seed / "modules")
        environment = go_environment(self.toolchain, places, flags=flags, network=False)
        here = job / "module"
        here.mkdir()
        (here / "go.mod").write_text("module std.invalid\n")
        for arguments in (["build", "--", *named, *_WITH_COVERAGE], ["tool", "covdata", "help"]):
            command = [str(self.toolchain.go), *arguments]
            done = await run(command, cwd=here, env=environment, timeout=seconds, limits=_LIMITS)
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
