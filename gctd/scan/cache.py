"""The cache directory: what is where, and what goes when it is full: the repository used longest ago, with all its caches.

- `repos/<repo_id>.git`: a bare mirror with the commits that were needed, each without its history. `<repo_id>.lock` is held
  while it is changed, shared while it is read.
- `go/<repo_id>`: what Go has built and downloaded for the repository. Each its own: its tests can write there.
- `jobs/<repo_id>-<n>`: the folder of one job. Beside it a file `.lock`, held by its worker; the kernel gives it back however
  the worker ends.
- `repos/<repo_id>.use`: held shared by every job on the repository, exclusively by who removes its caches; its time of change
  is that of the last use.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import attrs
import structlog

from gctd.scan.locks import FileLock, locked
from gctd.scan.removal import remove

_log = structlog.get_logger(__name__)


@attrs.frozen
class RepoCache:
    """The places of one repository."""

    mirror: Path
    lock: Path
    use: Path
    go: Path


class Cache:
    """The cache directory of a host, shared by its workers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._repos, self._go, self._jobs = (self.directory / name for name in ("repos", "go", "jobs"))
        for place in (self._repos, self._go, self._jobs):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)

    def of(self, repo_id: str) -> RepoCache:
        """The places of a repository."""
        repos = self._repos
        return RepoCache(repos / f"{repo_id}.git", repos / f"{repo_id}.lock", repos / f"{repo_id}.use", self._go / repo_id)

    @asynccontextmanager
    async def using(self, repo_id: str) -> AsyncIterator[RepoCache]:
        """Hold off the removal of a repository's caches."""
        places = self.of(repo_id)
        async with locked(places.use, shared=True):
            os.utime(places.use)
            yield places

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
        """Remove the folders of jobs whose worker is gone, and mirrors that were never finished; how many.

        With a job's folder goes what it had staged.
        """
        removed = 0
        for folder in [path for path in self._jobs.iterdir() if path.suffix != ".lock"]:
            if not folder.with_suffix(".lock").exists():
                removed += await remove(folder)
        for path in self._jobs.glob("*.lock"):
            lock = FileLock.try_acquire(path)
            if lock is not None:
                try:
                    folder = path.with_suffix("")
                    if not folder.exists() or await remove(folder):
                        removed += 1
                        lock.remove()
                finally:
                    lock.release()
        if removed:
            _log.info("folders of ended jobs removed", count=removed)
        return removed

    async def make_room(self, most: int) -> int:
        """Remove repositories that no job uses, the one used longest ago first, until all take up at most `most` bytes.

        Gives the number of bytes freed.
        """
        sizes = await asyncio.to_thread(self._sizes)
        total, freed = sum(sizes.values()), 0
        for repo_id in sorted(sizes, key=self._last_use):
            if total - freed <= most:
                break
            freed += sizes[repo_id] if await self._forget(repo_id) else 0
        if freed:
            _log.info("caches of repositories removed", freed=freed, left=total - freed)
        return freed

    async def _forget(self, repo_id: str) -> bool:
        places = self.of(repo_id)
        lock = FileLock.try_acquire(places.use)
        if lock is None:
            return False
        try:
            gone = [await remove(place) for place in (places.mirror, places.go)]
            return all(gone)
        finally:
            lock.release()

    def _last_use(self, repo_id: str) -> float:
        use = self.of(repo_id).use
        return use.stat().st_mtime if use.exists() else 0.0

    def _sizes(self) -> dict[str, int]:
        """Repository to the bytes that its caches take up."""
        ids = {path.stem for path in self._repos.glob("*.git")} | {path.name for path in self._go.iterdir()}
        return {repo_id: sum(_size(place) for place in (self.of(repo_id).mirror, self.of(repo_id).go)) for repo_id in ids}


def _size(directory: Path) -> int:
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except FileNotFoundError:  # Go tidies up meanwhile
                continue
    return total
