"""Copies of a database file: separate files next to it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from projections.errors import CopyRefused
from projections.rebuild.copies import CopyPart
from projections.stores.sqlite import files
from projections.stores.sqlite.connection import translated
from projections.stores.sqlite.lock import DatabaseLock
from projections.stores.sqlite.reader import SQLiteReader
from projections.stores.sqlite.store import SQLiteStore


class SQLiteCopies:
    """The copies of a database file: `projections.rebuild.copies.Copies`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def there(self) -> Collection[CopyPart]:
        """Which there are."""
        with translated(self._path):
            found = files.read(self._path)
            parts = {CopyPart.NEW: found.new, CopyPart.OLD: found.old}
            return [part for part, number in parts.items() if number is not None and files.file_of(self._path, number).exists()]

    def store(self, part: CopyPart) -> SQLiteStore:
        """A copy to write to."""
        return SQLiteStore(self._file(part), patience=0, is_copy=True)

    def reader(self, part: CopyPart) -> SQLiteReader:
        """A copy to look at."""
        return SQLiteReader(self._file(part), is_copy=True)

    async def discard(self, part: CopyPart) -> None:
        """Remove a copy, if it is there."""
        if part not in await self.there():
            return
        with translated(self._path):
            await asyncio.to_thread(self._discard, part)

    def _discard(self, part: CopyPart) -> None:
        file = self._file(part)
        lock = DatabaseLock.take(files.locked_as(file), patience=0)
        try:
            found = files.read(self._path)
            if part is CopyPart.OLD:
                files.write(self._path, files.Files(found.live))
            files.remove(file)
        finally:
            lock.release()

    def _file(self, part: CopyPart) -> Path:
        with translated(self._path):
            found = files.read(self._path)
            number = found.new if part is CopyPart.NEW else found.old
            if number is None:
                raise CopyRefused("there are no old tables")
            return files.file_of(self._path, number)
