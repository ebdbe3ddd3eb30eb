"""The database that an address names."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from projections.errors import StoreUnavailable
from projections.store import Reader
from projections.stores.sqlite import SQLiteReader, SQLiteStore
from projections.stores.sqlite.files import LEASE, read_owner
from projections.stores.sqlite.store import SQLiteCopies

if TYPE_CHECKING:
    from projections.stores.postgres import PostgresCopies, PostgresReader, PostgresStore


@attrs.frozen
class DatabaseLeader:
    """A process that keeps a lease on a database: `holder` names it, `silent` are the seconds since its last heartbeat."""

    holder: str
    silent: float
    lease: float

    @property
    def hangs(self) -> bool:
        """Whether its lease has run out."""
        return self.silent > self.lease


async def leader_at(url: str) -> DatabaseLeader | None:
    """The process with the lease on the database at an address; None if there is none. Raises StoreUnavailable."""
    file = path_of(url)
    if file is not None:
        return _of_file(file)
    from projections.stores.postgres import election, statements  # noqa: PLC0415 - slow

    found = await election.leader_at(url)
    return None if found is None else DatabaseLeader(found.holder, found.silent, statements.SECONDS)


def _of_file(file: Path) -> DatabaseLeader | None:
    lock = file.with_name(f"{file.name}.lock")
    try:
        owner, beaten = read_owner(lock.read_bytes()), lock.stat().st_mtime
    except FileNotFoundError:
        return None
    return (
        None
        if owner is None or not owner.alive
        else DatabaseLeader(f"process {owner.pid}", max(0.0, time.time() - beaten), LEASE)
    )


SQLITE = "sqlite:"
POSTGRES = ("postgres:", "postgresql:")


PATIENCE = 2.0
"""Seconds for which a process that opens a file waits for the one that has it."""


def store_at(
    url: str, *, patience: float = PATIENCE, on_waiting: Callable[[str], object] | None = None
) -> SQLiteStore | PostgresStore:
    """The store at an address, to write to it; `patience` and `on_waiting` as `SQLiteStore` has them.

    `sqlite:<path>` (also `sqlite:///<absolute path>`), or `postgresql://user:password@host:port/database`, also
    `postgres://...`. Raises StoreUnavailable for an address of another form.
    """
    if not url.startswith(POSTGRES):
        return SQLiteStore(_file(url), patience=patience, on_waiting=on_waiting)
    from projections.stores.postgres import PostgresStore  # noqa: PLC0415 - slow

    return PostgresStore(url)


def reader_at(url: str) -> SQLiteReader | PostgresReader:
    """As `store_at`, to look at it only: also while a service writes to it."""
    if not url.startswith(POSTGRES):
        return SQLiteReader(_file(url))
    from projections.stores.postgres import PostgresReader  # noqa: PLC0415 - slow

    return PostgresReader(url)


def copies_at(url: str) -> SQLiteCopies | PostgresCopies:
    """The copies of the tables at an address. Raises StoreUnavailable as `store_at`."""
    if not url.startswith(POSTGRES):
        return SQLiteCopies(_file(url))
    from projections.stores.postgres import PostgresCopies  # noqa: PLC0415 - slow

    return PostgresCopies(url)


def copies_of(reader: Reader) -> SQLiteCopies | PostgresCopies | None:
    """The copies of the tables that a reader reads; None if the database keeps none."""
    if isinstance(reader, SQLiteReader):
        return SQLiteCopies(reader.path)
    from projections.stores.postgres import PostgresCopies, PostgresReader  # noqa: PLC0415 - slow

    return PostgresCopies(reader.address.url) if isinstance(reader, PostgresReader) else None


def path_of(url: str) -> Path | None:
    """The file that an address names, None if it names none on this machine. Raises StoreUnavailable as `store_at`."""
    return None if url.startswith(POSTGRES) else _file(url)


def shown(url: str) -> str:
    """An address without its password. Raises StoreUnavailable as `store_at`."""
    if not url.startswith(POSTGRES):
        return url
    from projections.stores.postgres.connection import DatabaseAddress  # noqa: PLC0415 - slow

    return DatabaseAddress(url).shown


def _file(url: str) -> Path:
    if not url.startswith(SQLITE) or not url.removeprefix(SQLITE).strip("/"):
        raise StoreUnavailable(
            f"{url.partition(':')[0]!r} is no database that is known: give sqlite:<path> or postgresql://<user>@<host>/<database>"
        )
    path = url.removeprefix(SQLITE)
    return Path(path.removeprefix("//")).expanduser()
