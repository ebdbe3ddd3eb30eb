"""The cache directory: what is where, how much of it there may be, and what goes first.

- `clones/<repo_id>.git`: a bare mirror with the commits that were needed, each without its history.
- `builds/<repo_id>/go`: what Go has built and downloaded for the repository. Each its own: its tests can write there.
- `builds/std-<key>`: what Go has built of its standard library, to begin the former with (see `gctd.scan.cache.stdlib_seed`).
- `jobs/<repo_id>-<n>`: the folder of one job. Beside it a file `.lock`, held by its worker; the kernel gives it back however
  the worker ends.

The first three are shelves (see `gctd.scan.cache.lru`).
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import attrs
import structlog

from gctd.scan.cache.lru import Item, Shelf
from gctd.scan.isolation.locks import FileLock
from gctd.scan.isolation.process import MIB
from gctd.scan.isolation.removal import remove

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class CacheLimits:
    """How many bytes clones and builds may take up while no job uses them, and how many stay free on their disk."""

    clones: int = 10_240 * MIB
    builds: int = 20_480 * MIB
    keep_free: int = 2_048 * MIB


DEFAULT_LIMITS = CacheLimits()


class Cache:
    """The cache directory of a host, shared by its workers."""

    def __init__(self, directory: Path, limits: CacheLimits = DEFAULT_LIMITS) -> None:
        self.directory = directory.absolute()
        self._limits = limits
        self._jobs = self.directory / "jobs"
        self._jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.clones = Shelf(self.directory / "clones")
        self.builds = Shelf(self.directory / "builds")

    @asynccontextmanager
    async def job(self, repo_id: str) -> AsyncIterator[Path]:
        """A new folder, removed at the end.

        The jobs on a repository get the same few paths again and again: a path is part of what Go builds, and so of the key
        under which its cache has it.
        """
        lock = await self._free_slot(repo_id[:12])
        folder = lock.path.with_suffix("")
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            try:
                await remove(folder)
            finally:
                lock.remove()
                lock.release()

    async def _free_slot(self, name: str) -> FileLock:
        for number in count():
            lock = FileLock.try_acquire(self._jobs / f"{name}-{number}.lock")
            if lock is None:
                continue
            folder = lock.path.with_suffix("")
            if not folder.exists() or await remove(folder):  # of a job whose worker is gone
                return lock
            lock.release()
        raise AssertionError("there is always a free number")

    async def sweep(self) -> int:
        """Remove the folders of jobs whose worker is gone, with all that they had staged; how many."""
        removed = 0
        for folder in {path.with_suffix("") if path.suffix == ".lock" else path for path in self._jobs.iterdir()}:
            # Also one without a lock file: by the time it is looked at, it may be the folder of a new job.
            lock = FileLock.try_acquire(folder.with_suffix(".lock"))
            if lock is None:
                continue
            try:
                left = folder.exists()
                if not left or await remove(folder):
                    removed += left
                    lock.remove()
            finally:
                lock.release()
        if removed:
            _log.info("folders of ended jobs removed", count=removed)
        return removed

    def is_short(self) -> bool:
        """Whether less is free on the disk than is to be kept."""
        return shutil.disk_usage(self.directory).free < self._limits.keep_free

    async def make_room(self) -> int:
        """Remove what no job uses, the one used longest ago first, until all is within the limits; the number of bytes freed.

        Where another worker is at it, nothing is done.
        """
        lock = FileLock.try_acquire(self.directory / "room.lock")
        if lock is None:
            return 0
        try:
            clones, builds = await self.clones.items(), await self.builds.items()
            freed = await _shrink(clones, self._limits.clones) + await _shrink(builds, self._limits.builds)
            if self.is_short():
                freed += await self._free_disk()
        finally:
            lock.release()
        if freed:
            _log.info("caches of repositories removed", freed=freed)
        return freed

    async def _free_disk(self) -> int:
        freed = 0
        for item in sorted([*await self.clones.items(), *await self.builds.items()]):
            freed += await item.forget()
            if not self.is_short():
                return freed
        _log.warning("less is free on the disk of the cache than is to be kept", keep=self._limits.keep_free)
        return freed


async def _shrink(items: Iterable[Item], most: int) -> int:
    """Remove items, in their order, until they are `most` bytes together; the number of bytes freed."""
    items = list(items)
    total, freed = sum(item.size for item in items), 0
    for item in items:
        if total - freed <= most:
            break
        freed += await item.forget()
    return freed
