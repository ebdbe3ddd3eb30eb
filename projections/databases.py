"""The database that an address names."""

from __future__ import annotations

from pathlib import Path

from projections.errors import StoreUnavailable
from projections.sqlite import SQLiteStore

SQLITE = "sqlite:"


def store_at(url: str) -> SQLiteStore:
    """The store at `sqlite:<path>` (also `sqlite:///<absolute path>`). Raises StoreUnavailable for an address of another form."""
    if not url.startswith(SQLITE) or not url.removeprefix(SQLITE).strip("/"):
        raise StoreUnavailable(f"{url.partition(':')[0]!r} is no database that is known: give sqlite:<path>")
    path = url.removeprefix(SQLITE)
    return SQLiteStore(Path(path.removeprefix("//")).expanduser())
