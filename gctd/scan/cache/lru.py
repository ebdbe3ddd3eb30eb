"""Directories of one kind in the cache. The least recently used are removed if they take up too much space.

Each directory `<name>` has an adjacent file `<name>.use`. Every job that uses the directory holds this file shared; a removal
holds it exclusively. Its modification time is the time of the last use. It holds the size of the directory in bytes, and is empty
while a job may change the size. So the directory of a killed worker has an unknown size and is measured at the next use.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import structlog

from gctd.scan.errors import UnsafeFile
from gctd.scan.isolation.files import Directory
from gctd.scan.isolation.locks import FileLock, locked
from gctd.scan.isolation.removal import remove

_USE = ".use"
_LOCK = ".lock"

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True, order=True)
class Item:
    """One of them; they sort by `last_use`, seconds since the epoch. `size` is in bytes, None if it cannot be measured."""

    last_use: float
    name: str
    size: int | None = attrs.field(order=False)
    parent: LruDirectory = attrs.field(order=False, repr=False)

    async def forget(self) -> int:
        """Remove it, unless a job uses it. Return the bytes freed."""
        return (self.size or 0) if await self.parent.forget(self.name) else 0


class LruDirectory:
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
                        size = await asyncio.to_thread(_measure, path)
                        held.write("" if size is None else str(size))
                    else:
                        held.remove()

    async def items(self) -> list[Item]:
        """The directories, the one used longest ago first."""
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
            yield Item(last_use=last_use, name=path.name, size=size, parent=self)

    def _measured(self, path: Path) -> int | None:
        """The size of a directory that is in use, or whose last user was killed; in this case it is written down."""
        use, size = FileLock.try_acquire(self._use(path.name)), _measure(path)
        if use is not None:
            try:
                if size is not None:
                    last_use = use.path.stat()
                    use.write(str(size))
                    os.utime(use.path, ns=(last_use.st_atime_ns, last_use.st_mtime_ns))
            finally:
                use.release()
        return size


def _measure(path: Path) -> int | None:
    """Return the bytes of a directory on the disk; None if they cannot be measured."""
    try:
        with Directory.open(path) as directory:
            return directory.disk_usage()
    except FileNotFoundError:
        return 0
    except (OSError, UnsafeFile) as error:
        _log.warning("a directory of the cache cannot be measured", path=str(path), reason=str(error))
        return None
