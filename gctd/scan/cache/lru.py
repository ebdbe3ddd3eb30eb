"""A shelf of the cache: directories of one kind, of which those that were used longest ago go when they take up too much.

Beside the directory `<name>` stands the file `<name>.use`: held shared by every job that uses it, exclusively by who removes it.
Its time of change is that of the last use; in it stands how many bytes the directory takes up, nothing while a job may change
that. So a worker that was killed leaves a directory whose size is not known: it is measured again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from gctd.scan.isolation.locks import FileLock, locked
from gctd.scan.isolation.removal import remove

_USE = ".use"
_LOCK = ".lock"


@attrs.frozen(kw_only=True, order=True)
class Item:
    """A directory of a shelf; they sort by `last_use`, seconds since the epoch. `size` is in bytes."""

    last_use: float
    name: str
    size: int
    shelf: Shelf = attrs.field(order=False, repr=False)

    async def forget(self) -> int:
        """Remove it, unless a job uses it; how many bytes that frees."""
        return self.size if await self.shelf.forget(self.name) else 0


class Shelf:
    """The directories below one, shared by the workers of a host."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, name: str) -> Path:
        """The directory of that name, which may not be there yet."""
        return self._directory / name

    def lock(self, name: str) -> Path:
        """The file to hold while the directory is changed, shared while it is read; only while it is in use."""
        return self._directory / f"{name}{_LOCK}"

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[Path]:
        """Hold off the removal of a directory."""
        path = self.path(name)
        async with locked(self._use(name), shared=True) as held:
            held.write("")
            held.touch()
            try:
                yield path
            finally:
                if held.alone():
                    if path.exists():
                        held.write(str(await asyncio.to_thread(_measure, path)))
                    else:
                        held.remove()

    async def items(self) -> list[Item]:
        """What is on the shelf, the one used longest ago first."""
        return await asyncio.to_thread(lambda: sorted(self._items()))

    async def forget(self, name: str) -> bool:
        """Remove a directory, unless a job uses it; whether it is gone."""
        use = FileLock.try_acquire(self._use(name))
        if use is None:
            return False
        try:
            if not await remove(self.path(name)):
                return False
            self.lock(name).unlink(missing_ok=True)  # who holds it uses the directory
            use.remove()
            return True
        finally:
            use.release()

    def _use(self, name: str) -> Path:
        return self._directory / f"{name}{_USE}"

    def _items(self) -> Iterable[Item]:
        for path in self._directory.iterdir():
            if path.suffix in (_USE, _LOCK):
                continue
            use = self._use(path.name)
            try:
                last_use, text = use.stat().st_mtime, use.read_text()
            except FileNotFoundError:
                last_use, text = 0.0, ""
            size = int(text) if text.isdecimal() else self._measured(path)
            yield Item(last_use=last_use, name=path.name, size=size, shelf=self)

    def _measured(self, path: Path) -> int:
        """The size of a directory that is in use, or whose last user was killed; in this case it is written down."""
        use, size = FileLock.try_acquire(self._use(path.name)), _measure(path)
        if use is not None:
            last_use = use.path.stat()
            use.write(str(size))
            os.utime(use.path, ns=(last_use.st_atime_ns, last_use.st_mtime_ns))
            use.release()
        return size


def _measure(directory: Path) -> int:
    """The bytes that a directory takes up on the disk."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except FileNotFoundError:  # Go tidies up meanwhile
                continue
    return total
