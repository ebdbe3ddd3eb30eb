"""The cache directory: its layout, its limits, and the order of removal.

- `clones/<repo_id>.git`: a bare mirror with the required commits, each without its history.
- `builds/<repo_id>`: Go's downloads and build results for the repository (see `GoCaches`). No test can write there.
- `builds/std-<key>`: Go's build of its standard library, the first content of `builds/<repo_id>` (see `gctd.scan.cache.stdlib`).
- `jobs/<repo_id>-<n>`: the folder of one job. Its worker holds the adjacent file `.lock`. The kernel releases the lock at the
  end of the worker, whatever the cause of the end.

The least recently used of the first three are removed first (see `gctd.scan.cache.lru`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import attrs
import structlog

from gctd.scan.cache.lru import Item, LruDirectory
from gctd.scan.disk import MIB, bytes_to_keep, free_bytes
from gctd.scan.errors import ScanError
from gctd.scan.isolation.locks import FileLock
from gctd.scan.isolation.removal import remove

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class CacheLimits:
    """Limit of the bytes of unused clones and builds, and the bytes that stay free on their disk."""

    clones: int = 10_240 * MIB
    builds: int = 20_480 * MIB
    keep_free: int = 2_048 * MIB


DEFAULT_LIMITS = CacheLimits()


class Cache:
    """The cache directory of a host, shared by its workers."""

    def __init__(self, directory: Path, limits: CacheLimits = DEFAULT_LIMITS) -> None:
        self.directory = directory.absolute()
        self._limits = limits
        self.jobs = self.directory / "jobs"
        self.jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.clones = LruDirectory(self.directory / "clones")
        self.builds = LruDirectory(self.directory / "builds")

    @asynccontextmanager
    async def job(self, repo_id: str) -> AsyncIterator[Path]:
        """Make a new folder, and remove it at the end.

        The jobs on a repository reuse the same few paths: Go's builds contain the path, so it is part of the key in Go's cache.
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
            lock = FileLock.try_acquire(self.jobs / f"{name}-{number}.lock")
            if lock is None:
                continue
            folder = lock.path.with_suffix("")
            with ExitStack() as refused:
                refused.callback(lock.release)
                if not folder.exists() or await remove(folder):  # of a job whose worker is gone
                    refused.pop_all()
                    return lock
        raise AssertionError("there is always a free number")

    async def sweep(self) -> int:
        """Remove the folders of lost workers' jobs, with all staged files. Return the number of folders."""
        removed = 0
        for folder in {path.with_suffix("") if path.suffix == ".lock" else path for path in self.jobs.iterdir()}:
            # This includes a folder without a lock file, which may by now be the folder of a new job.
            lock = FileLock.try_acquire(folder.with_suffix(".lock"))
            if lock is None:
                continue
            try:
                left = folder.exists()
                if not left or await remove(folder):
                    removed += left
                    lock.remove()
            except (OSError, ScanError) as error:  # one folder never keeps the others, or the worker, from going on
                _log.error("the folder of an ended job stays", path=str(folder), reason=str(error))
            finally:
                lock.release()
        if removed:
            _log.info("folders of ended jobs removed", count=removed)
        return removed

    def is_short(self) -> bool:
        """Whether the disk has less free space than it should keep (`gctd.scan.disk`)."""
        return free_bytes(self.directory) < bytes_to_keep(self.directory, self._limits.keep_free)

    async def make_room(self) -> int:
        """Remove unused directories, the least recently used first, until all are within the limits. Return the bytes freed.

        If another worker does the same at this time, the call has no effect.
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
            freed += await _forget(item)
            if not self.is_short():
                return freed
        _log.warning("less is free on the disk of the cache than is to be kept", keep=self._limits.keep_free)
        return freed


async def _shrink(items: Iterable[Item], most: int) -> int:
    """Remove items, in their order, until they are `most` bytes together; the number of bytes freed.

    An item that cannot be measured goes first: it may be of any size.
    """
    items = list(items)
    total, freed = sum(item.size or 0 for item in items), 0
    for item in [item for item in items if item.size is None]:
        await _forget(item)
    for item in items:
        if total - freed <= most:
            break
        if item.size is not None:
            freed += await _forget(item)
    return freed


async def _forget(item: Item) -> int:
    """Remove an item if that is possible; the number of bytes freed."""
    try:
        return await item.forget()
    except (OSError, ScanError) as error:
        _log.error("a directory of the cache stays", name=item.name, reason=str(error))
        return 0
