"""Go's build of its standard library, made once for all tests: each cold cache would take a quarter of a minute."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from gctd.scan.cache.lru import LruDirectory
from gctd.scan.cache.stdlib import StdlibBuildCache
from gctd.scan.go.toolchain import find_toolchain
from gctd.scan.isolation.locks import locked
from tests.support import ROOT

_KEPT = ROOT / ".pytest_cache" / "d" / "builds"
_PACKAGES = ("encoding/json", "fmt", "os/exec", "testing")
"""With what they import, the packages that repositories of tests need. Each more is copied for each repository."""


async def give(cache: Path) -> None:
    """Put the build into a worker's cache directory, if it has none."""
    builds = cache / "builds"
    if not any(builds.glob("std-*")):
        found = await built()
        await asyncio.to_thread(shutil.copytree, found, builds / found.name, copy_function=_linked)


def _linked(file: str, name: str) -> None:
    """A hard link, or a copy on another file system. Go writes a file of a cache once: its name is the digest of its content."""
    try:
        os.link(file, name)
    except OSError:
        shutil.copy2(file, name)


async def give_packages(build: Path) -> None:
    """Put the build into a build cache of Go, which is not there yet. Several processes may do that at once."""
    build.parent.mkdir(parents=True, exist_ok=True)
    async with locked(build.with_suffix(".lock")):
        if not build.exists():  # noqa: ASYNC240 - a test has nothing else to do
            found = await built()
            await asyncio.to_thread(shutil.copytree, found / "build", build.with_suffix(".new"), copy_function=_linked)
            build.with_suffix(".new").rename(build)


@cache
def lasting_build_cache() -> Path:
    """Go's build cache for commands that tests run themselves. It has the build, and lasts over runs of the tests."""
    place = ROOT / ".pytest_cache" / "d" / "go" / "build"
    asyncio.run(give_packages(place))
    return place


async def built() -> Path:
    """The build, by the one process of the tests that is the first to need it."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        stdlib = StdlibBuildCache(LruDirectory(_KEPT), await find_toolchain(scratch))
        found = stdlib.directory.path(stdlib.name())
        async with locked(_KEPT / "made.lock"):
            if not (found / "made").exists():
                for place in ("one", "job"):
                    (scratch / place).mkdir()
                await stdlib.restore(_PACKAGES, scratch / "one", scratch / "job", flags=(), seconds=600)
                (found / "made").touch()
    return found
