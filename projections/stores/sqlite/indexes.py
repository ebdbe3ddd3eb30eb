"""Indexes that are left out while tables are filled: made of all rows at once they take a fraction of the time.

A temporary table of the database has their definitions, so a process that comes later can make them if this one is killed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from projections.stores.names import LEFT_OUT, quoted
from projections.stores.sqlite.connection import transaction
from projections.stores.sqlite.schema import stored_table


def leave_out(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Drop the indexes of empty tables that only queries need. `connection` has a transaction open.

    Unique indexes stay, and indexes that are looked into when a row goes that others refer to.
    """
    connection.execute(f"CREATE TABLE IF NOT EXISTS {LEFT_OUT} (name TEXT NOT NULL PRIMARY KEY, statement TEXT NOT NULL) STRICT")
    for table in tables:
        if connection.execute(f"SELECT EXISTS (SELECT * FROM {quoted(table)})").fetchone()[0]:  # noqa: S608 - quoted
            continue
        for name in _for_queries(connection, table):
            connection.execute(
                f"INSERT INTO {LEFT_OUT} SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND name = ?",  # noqa: S608 - a constant
                (name,),
            )
            connection.execute(f"DROP INDEX {quoted(name)}")


def make(connection: sqlite3.Connection) -> None:
    """Make all that have been left out, each in a separate transaction."""
    with _sorting_on_disk(connection):
        _make_all(connection, transaction)


def make_within(connection: sqlite3.Connection) -> None:
    """As `make`, in the transaction that `connection` has open."""
    _make_all(connection, nullcontext)


def _for_queries(connection: sqlite3.Connection, table: str) -> list[str]:
    stored = stored_table(connection, table)
    referring = {key.column for key in stored.foreign_keys}
    return [
        index.name for index in stored.indexes if index.origin == "c" and not index.unique and index.columns[0] not in referring
    ]


def _make_all(connection: sqlite3.Connection, within: Callable[[sqlite3.Connection], AbstractContextManager[object]]) -> None:
    if not stored_table(connection, LEFT_OUT).exists():
        return
    next_one = f"SELECT name, statement FROM {LEFT_OUT} LIMIT 1"  # noqa: S608 - a constant
    while (found := connection.execute(next_one).fetchone()) is not None:
        name, statement = found
        with within(connection):
            connection.execute(statement)
            connection.execute(f"DELETE FROM {LEFT_OUT} WHERE name = ?", (name,))  # noqa: S608 - a constant
    connection.execute(f"DROP TABLE {LEFT_OUT}")


@contextmanager
def _sorting_on_disk(connection: sqlite3.Connection) -> Iterator[None]:
    """The rows to be sorted may be larger than the memory there is."""
    (before,) = connection.execute("PRAGMA temp_store").fetchone()
    connection.execute("PRAGMA temp_store = FILE")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA temp_store = {int(before)}")
