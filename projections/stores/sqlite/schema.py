"""The tables that every database has, and the descriptions of tables in the catalog."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import attrs
from sqlite_utils import Database
from sqlite_utils.db import Table as StoredTable

from projections.model import COMMAND_KEYS, ColumnType, Projection, StoredColumn, Table, create_table
from projections.store import SchemaVersion
from projections.stores import names
from projections.stores.names import CHECKPOINTS, LEFT_OUT, MARKS, MIGRATIONS, PARKED, PARKED_COLUMNS, SCRUBS, quoted
from projections.stores.sqlite.connection import transaction


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


_HOLDS: Mapping[str, frozenset[ColumnType]] = {
    "INT": frozenset(("integer", "boolean")),
    "INTEGER": frozenset(("integer", "boolean")),
    "TEXT": frozenset(("text", "timestamp", "json")),
    "REAL": frozenset(("real",)),
}
"""The values that a column of a STRICT table can hold unchanged (https://www.sqlite.org/stricttables.html)."""


def create_system_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of the store itself if they are missing. `connection` has a transaction open."""
    database = _database(connection)
    database.table(CHECKPOINTS).create(
        {"projection": str, "version": int, "incarnation": str, "sequence": int, "applied": int, "record": str, "digest": str},
        pk="projection",
        not_null={"projection", "version", "incarnation", "sequence", "applied"},
        if_not_exists=True,
        strict=True,
    )
    connection.execute(create_table(COMMAND_KEYS, "sqlite", if_missing=True))
    texts = ("projection", "subject", "types", "error", "traceback", "at")
    database.table(PARKED).create(
        {name: str if name in texts else int for name in PARKED_COLUMNS},
        pk=("projection", "subject"),
        not_null=set(PARKED_COLUMNS),
        if_not_exists=True,
        strict=True,
    )
    database.table(MARKS).create(
        {"stream": str, "sequence": int, "digest": str, "record": str},
        pk=("stream", "sequence"),
        not_null={"stream", "sequence", "digest", "record"},
        if_not_exists=True,
        strict=True,
    )
    database.table(SCRUBS).create(
        {"stream": str, "state": str}, pk="stream", not_null={"stream", "state"}, if_not_exists=True, strict=True
    )
    database.table(MIGRATIONS).create(
        {"version": int, "dirty": int}, pk="version", not_null={"version", "dirty"}, if_not_exists=True, strict=True
    )


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the tables of the store itself are of this version. Raises StoreForeign."""
    rows = connection.execute(f"SELECT name FROM pragma_table_info('{CHECKPOINTS}')")  # noqa: S608 - a constant
    names.check_format(path, [name for (name,) in rows])


def read_version(connection: sqlite3.Connection) -> SchemaVersion:
    """The last migration applied."""
    row = connection.execute(f"SELECT version, dirty FROM {MIGRATIONS}").fetchone()  # noqa: S608 - a constant
    (taken_back,) = connection.execute("PRAGMA user_version").fetchone()
    return SchemaVersion(row[0], bool(row[1]), bool(taken_back)) if row else SchemaVersion(0)


def write_version(connection: sqlite3.Connection, version: SchemaVersion) -> None:
    """Record the last migration applied."""
    connection.execute(f"DELETE FROM {MIGRATIONS}")  # noqa: S608 - a constant
    connection.execute(f"INSERT INTO {MIGRATIONS} VALUES (?, ?)", (version.version, int(version.dirty)))  # noqa: S608 - a constant
    connection.execute(f"PRAGMA user_version = {int(version.taken_back)}")


def read_columns(connection: sqlite3.Connection, table: str) -> Sequence[StoredColumn]:
    """The columns of a table in order, none if there is no such table."""
    stored = stored_table(connection, table)
    columns = stored.columns
    strict = not columns or stored.strict
    return [
        StoredColumn(
            name=column.name,
            type=column.type.upper(),
            holds=_HOLDS.get(column.type.upper(), frozenset()),
            key=column.is_pk - 1 if column.is_pk else None,
            strict=strict,
        )
        for column in columns
    ]


@attrs.frozen
class Shape:
    """The properties of a table whose change by a migration needs a refill: its columns, its number of rows."""

    columns: tuple[tuple[str, str], ...]
    rows: int


def shapes(connection: sqlite3.Connection, projections: Iterable[Projection]) -> dict[str, Shape]:
    """The shape of each table of the projections that there is, by its name."""
    tables = (stored_table(connection, table.name) for projection in projections for table in projection.tables)
    return {
        table.name: Shape(tuple((column.name, column.type) for column in table.columns), table.count)
        for table in tables
        if table.exists()
    }


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end the transaction that they have to run in."""
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip(" \t\r\n;"):
        yield statement


def order_of_keys(table: Table) -> str:
    """The ORDER BY that sorts a table by its key, text by its bytes."""
    return ", ".join(f"{quoted(name)} COLLATE BINARY" for name in table.key)


def stored_table(connection: sqlite3.Connection, name: str) -> StoredTable:
    """The description of a table in the database."""
    return _database(connection).table(name)


def _database(connection: sqlite3.Connection) -> Database:
    return Database(connection, recursive_triggers=False, execute_plugins=False)
