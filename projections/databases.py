"""The database that an address names."""

from __future__ import annotations

from pathlib import Path

from projections.errors import StoreUnavailable
from projections.sqlite import SQLiteReader, SQLiteStore

SQLITE = "sqlite:"


def store_at(url: str) -> SQLiteStore:
    """The store at `sqlite:<path>` (also `sqlite:///<absolute path>`). Raises StoreUnavailable for an address of another form."""
    return SQLiteStore(path_of(url))


def reader_at(url: str) -> SQLiteReader:
    """As `store_at`, to look at it only: also while a service writes to it."""
    return SQLiteReader(path_of(url))


def path_of(url: str) -> Path:
    """The file that an address names. Raises StoreUnavailable for an address of another form."""
    if not url.startswith(SQLITE) or not url.removeprefix(SQLITE).strip("/"):
        raise StoreUnavailable(f"{url.partition(':')[0]!r} is no database that is known: give sqlite:<path>")
    path = url.removeprefix(SQLITE)
    return Path(path.removeprefix("//")).expanduser()
