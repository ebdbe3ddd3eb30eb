"""What Go has built of its standard library, to begin the build cache of a repository with.

A repository has a build cache of its own, because its tests can write there: nothing that one repository left is ever used for
another. Most of what Go builds for a first scan is its own library, though. That is built here, in a cache that only this module
writes to and that no sandbox shows, from nothing but Go's installation; each scan that begins adds what is still missing. A new
cache gets a copy, and no hard links: tests run as the owner of the files and could change what other repositories have. Where the
file system can, the copies share their blocks.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import attrs
import structlog

from gctd.scan.cache.lru import Shelf
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
class Seeds:
    """The built standard library of a toolchain, on the shelf of builds; one for each set of flags that matters."""

    shelf: Shelf
    toolchain: Toolchain

    async def plant(self, packages: Iterable[str], into: Path, job: Path, *, flags: Sequence[str], seconds: float) -> None:
        """Begin a Go cache with these packages of the standard library, built; at its first scan, before its tests run.

        `into` is the cache (see `GoPlaces`), the directory above it that of the repository, where no test can write; `job` the
        job's folder; `flags` those that go is given. Where that does not work out, Go builds what it needs by itself.
        """
        planted = into.with_name("planted")
        async with locked(self.shelf.lock(into.parent.name)):
            if planted.exists():
                return
            try:
                await self._plant(sorted(set(packages)), into, job, flags, seconds)
            except (ScanError, OSError) as error:
                _log.warning("a build cache was not begun with the standard library", reason=str(error))
            planted.touch()

    def name(self, flags: Iterable[str] = ()) -> str:
        """What is built with these flags has this name on the shelf."""
        described = f"{self.toolchain.go}\n{self.toolchain.version}\n{' '.join(flags)}"
        return f"std-{sha256(described.encode()).hexdigest()[:16]}"

    async def _plant(self, packages: Sequence[str], into: Path, job: Path, flags: Sequence[str], seconds: float) -> None:
        flags = [flag for flag in flags if flag in _MATTER]
        name, copy = self.name(flags), into / "build.new"
        await remove(copy)
        async with self.shelf.using(name) as seed:
            async with locked(self.shelf.lock(name)):
                await self._build(packages, seed, job / "std", flags, min(seconds / 2, _LONGEST))
            async with locked(self.shelf.lock(name), shared=True):
                command = ["cp", "-R", "--", str(seed / "build"), str(copy)]
                copied = await run(command, cwd=into, env=_NOTHING_LEFT, timeout=_LONGEST)
        if copied.ok:
            await asyncio.to_thread(_merge, copy, into / "build")
        await remove(copy)

    async def _build(self, packages: Sequence[str], seed: Path, job: Path, flags: Sequence[str], seconds: float) -> None:
        """Build what is missing: packages, and the program that reports on packages without tests."""
        named = [path for path in packages if _NAME.fullmatch(path) and not {"internal", "vendor"} & set(path.split("/"))]
        environment = go_environment(self.toolchain, GoPlaces(job=job, cache=seed), flags=flags, network=False)
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
    """Move the files of one build cache into another, each as a whole, where there is none; Go may be at work there."""
    for folder, _, files in os.walk(copy):
        there = target / os.path.relpath(folder, copy)
        there.mkdir(parents=True, exist_ok=True)
        for name in files:
            if not (there / name).exists():
                (Path(folder) / name).rename(there / name)
