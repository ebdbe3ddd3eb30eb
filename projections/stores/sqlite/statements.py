"""The tables of a store itself, the descriptions of tables, migrations, and the statements of a batch.

The statements of a batch write the last change of each row, in as few and as large statements as possible. Each process that
opens a database file to write has a newer fencing token, which is compared in each transaction. The lock on the file keeps others
away while it is there. The token protects also if the lock file was removed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
from sqlite_utils import Database
from sqlite_utils.db import Table as StoredTable

from projections.errors import MigrationError, NotLeading, RowRefused
from projections.model import COMMAND_KEYS, ColumnType, Projection, StoredColumn, Table, create_table, timestamp_text
from projections.store import Checkpoint, Mark, Parked, Place, SchemaVersion
from projections.stores import common
from projections.stores.common import (
    CHECKPOINT_COLUMNS,
    CHECKPOINTS,
    LEASE,
    LEFT_OUT,
    MARKS,
    MIGRATIONS,
    PARKED,
    PARKED_COLUMNS,
    SCRUBS,
    Rows,
    changed_by,
    on_conflict,
    quoted,
)
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
    common.check_format(path, [name for (name,) in rows])


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


TOGETHER = (64, 32, 16, 8, 4, 2, 1)
"""Rows that one statement puts: as many as there are, in as few statements as these sizes allow. SQLite's module gives the
interpreter's lock away with each statement, and gets it back up to 5 ms later where another thread is busy; and binding and
resetting one by one cost a tenth of a replay."""


def write_rows(connection: sqlite3.Connection, tables: Sequence[tuple[Table, Rows]]) -> None:
    """Put the rows in the order of the tables, then delete in the reverse order. Raises RowRefused for a wrong time."""
    for table, rows in tables:
        _put(connection, table, _stored([row for row in rows.values() if row is not None], table.timestamps))
    for table, rows in reversed(tables):
        gone = [key if len(table.key) > 1 else (key,) for key, row in rows.items() if row is None]
        if gone:
            connection.executemany(_delete(table), _stored(gone, _key_timestamps(table)))


def _put(connection: sqlite3.Connection, table: Table, rows: list[Any]) -> None:
    start = 0
    for size in TOGETHER:
        while len(rows) - start >= size:
            connection.execute(_upsert(table, size), list(chain.from_iterable(rows[start : start + size])))
            start += size


@lru_cache
def _key_timestamps(table: Table) -> tuple[int, ...]:
    """Indexes of the columns of type `timestamp` in a key."""
    return tuple(index for index, name in enumerate(table.key) if table.names.index(name) in table.timestamps)


def _stored(rows: list[tuple[Any, ...]], timestamps: tuple[int, ...]) -> list[Any]:
    if not timestamps:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for index in timestamps:
            try:
                value = values[index]
                if value is not None:
                    values[index] = timestamp_text(value)
            except (AttributeError, IndexError, TypeError) as error:
                raise RowRefused(f"row {row!r} does not have an aware datetime in column {index + 1}: {error}") from error
        converted.append(values)
    return converted


def read_checkpoints(connection: sqlite3.Connection) -> dict[str, Checkpoint]:
    """All checkpoints, by projection."""
    rows = connection.execute(f"SELECT {', '.join(CHECKPOINT_COLUMNS)} FROM {CHECKPOINTS}").fetchall()  # noqa: S608 - constants
    return {row[0]: Checkpoint(**dict(zip(CHECKPOINT_COLUMNS, row, strict=True))) for row in rows}


def write_checkpoints(connection: sqlite3.Connection, checkpoints: Sequence[Checkpoint]) -> None:
    """Move checkpoints."""
    if checkpoints:
        rows = [attrs.astuple(checkpoint) for checkpoint in checkpoints]
        connection.execute(_replace(CHECKPOINTS, len(CHECKPOINT_COLUMNS), len(rows)), list(chain.from_iterable(rows)))


def read_marks(connection: sqlite3.Connection, stream: str, above: int) -> Sequence[Mark]:
    """The marks of a stream above a sequence, in order."""
    sql = f"SELECT stream, sequence, digest, record FROM {MARKS} WHERE stream = ? AND sequence > ? ORDER BY sequence"  # noqa: S608 - a constant
    return [Mark(*row) for row in connection.execute(sql, (stream, above)).fetchall()]


def write_marks(connection: sqlite3.Connection, marks: Sequence[Mark]) -> None:
    """Write marks; existing ones stay."""
    if marks:
        sql = f"INSERT INTO {MARKS} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - a constant
        connection.executemany(sql, [attrs.astuple(mark) for mark in marks])


def read_scrubs(connection: sqlite3.Connection) -> Mapping[str, str]:
    """The state of the passes over each log, by stream."""
    return dict(connection.execute(f"SELECT stream, state FROM {SCRUBS}").fetchall())  # noqa: S608 - a constant


def write_scrubs(connection: sqlite3.Connection, scrubs: Mapping[str, str]) -> None:
    """Keep the state of the passes over some logs."""
    connection.executemany(f"INSERT OR REPLACE INTO {SCRUBS} VALUES (?, ?)", scrubs.items())  # noqa: S608 - a constant


def keep_checkpoints(connection: sqlite3.Connection, own: Collection[str], others: Iterable[Checkpoint]) -> None:
    """Keep the checkpoints of some projections, and replace the checkpoints of all others by these."""
    gone = [(name,) for name in read_checkpoints(connection) if name not in own]
    connection.executemany(f"DELETE FROM {CHECKPOINTS} WHERE projection = ?", gone)  # noqa: S608 - a constant
    write_checkpoints(connection, [checkpoint for checkpoint in others if checkpoint.projection not in own])


def read_parked(connection: sqlite3.Connection) -> Sequence[Parked]:
    """The parked aggregates, by projection and sequence."""
    columns = ", ".join(PARKED_COLUMNS)
    rows = connection.execute(f"SELECT {columns} FROM {PARKED} ORDER BY projection, sequence")  # noqa: S608 - constants
    named = (dict(zip(PARKED_COLUMNS, row, strict=True)) for row in rows.fetchall())
    return [Parked(**values | {"at": datetime.fromisoformat(values["at"])}) for values in named]


def write_parked(connection: sqlite3.Connection, parked: Mapping[Place, Parked | None]) -> None:
    """Park aggregates, or take them away if there is None."""
    places = ", ".join("?" * len(PARKED_COLUMNS))
    connection.executemany(
        f"INSERT OR REPLACE INTO {PARKED} ({', '.join(PARKED_COLUMNS)}) VALUES ({places})",  # noqa: S608 - constants
        [
            [timestamp_text(value) if name == "at" else value for name, value in attrs.asdict(one).items()]
            for one in parked.values()
            if one is not None
        ],
    )
    gone = [place for place, one in parked.items() if one is None]
    connection.executemany(f"DELETE FROM {PARKED} WHERE projection = ? AND subject = ?", gone)  # noqa: S608 - a constant


def forget(connection: sqlite3.Connection, projection: str, tables: Iterable[str]) -> None:
    """Remove a checkpoint and its parked aggregates, and empty the tables, given in an order that references allow."""
    for table in tables:
        connection.execute(f"DELETE FROM {quoted(table)}")  # noqa: S608 - quoted
    for table in (CHECKPOINTS, PARKED):
        connection.execute(f"DELETE FROM {table} WHERE projection = ?", (projection,))  # noqa: S608 - a constant


@lru_cache
def _upsert(table: Table, rows: int) -> str:
    columns = ", ".join(map(quoted, table.names))
    places = _places(len(table.names), rows)
    return f"INSERT INTO {quoted(table.name)} ({columns}) VALUES {places} {on_conflict(table)}"  # noqa: S608 - quoted


@lru_cache
def _replace(table: str, columns: int, rows: int) -> str:
    return f"INSERT OR REPLACE INTO {table} VALUES {_places(columns, rows)}"  # noqa: S608 - a constant


def _places(columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return ", ".join([row] * rows)


@lru_cache
def _delete(table: Table) -> str:
    condition = " AND ".join(f"{quoted(name)} = ?" for name in table.key)
    return f"DELETE FROM {quoted(table.name)} WHERE {condition}"  # noqa: S608 - quoted


_MAKE = f"""
CREATE TABLE IF NOT EXISTS {LEASE} (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL, pid INTEGER NOT NULL) STRICT
"""
_TAKE = f"""
INSERT INTO {LEASE} VALUES (1, 1, ?) ON CONFLICT (one) DO UPDATE SET token = token + 1, pid = excluded.pid RETURNING token
"""  # noqa: S608 - a constant
_LOOK = f"SELECT token, pid FROM {LEASE}"  # noqa: S608 - a constant


class WriteFence:
    """The fencing token of a writer, and the checkpoints as its last batch left them.

    SQLite's `data_version` changes if another connection commits (https://www.sqlite.org/pragma.html#pragma_data_version). While
    it is the same, neither the token nor a checkpoint has changed, and a batch reads neither of them.
    """

    def __init__(self, token: int) -> None:
        self._token = token
        self._version: int | None = None
        """The `data_version` at which the checkpoints are known; None while a transaction may change them."""
        self._seen = 0
        self._checkpoints: Mapping[str, Checkpoint] = {}

    @classmethod
    def take(cls, connection: sqlite3.Connection) -> WriteFence:
        """Become the newest writer, within a transaction."""
        connection.execute(_MAKE)
        (token,) = connection.execute(_TAKE, (os.getpid(),)).fetchone()
        return cls(int(token))

    def check(self, connection: sqlite3.Connection) -> None:
        """See, within a transaction that may write, that the token is the newest. Raises NotLeading."""
        self._version = None  # the transaction may change checkpoints
        newest, pid = connection.execute(_LOOK).fetchone()
        if newest != self._token:
            raise NotLeading(f"process {pid} writes to the database by now: this process wrote no row")

    def checkpoints(self, connection: sqlite3.Connection) -> Mapping[str, Checkpoint]:
        """The checkpoints, by projection, within a transaction of a batch. Raises NotLeading, StoreDamaged."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.check(connection)
            self._checkpoints = read_checkpoints(connection)
        self._version, self._seen = None, version
        return self._checkpoints

    def committed(self, checkpoints: Iterable[Checkpoint]) -> None:
        """The batch is committed, and has moved these checkpoints."""
        self._checkpoints = {**self._checkpoints, **{one.projection: one for one in checkpoints}}
        self._version = self._seen


def migrate(
    writer: sqlite3.Connection, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
) -> Sequence[str] | None:
    """Run the statements of one migration in a transaction that has begun, and empty the projections whose tables change.

    Return the names of these projections; None if the tables do not have the version `before`. Raises MigrationError.
    """
    if read_version(writer) != before:
        return None
    make_within(writer)
    old = shapes(writer, projections)
    _execute(writer, sql)
    new = shapes(writer, projections)
    changed = changed_by(projections, old, new)
    for projection in reversed(changed):
        left = [table.name for table in reversed(projection.tables) if table.name in new]
        forget(writer, projection.name, left)
    write_version(writer, after)
    return [projection.name for projection in changed]


def _execute(writer: sqlite3.Connection, script: str) -> None:
    for statement in statements(script):
        try:
            writer.execute(statement)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
                raise
            raise MigrationError(
                f"a statement of the migration failed, it had no effect: {error}: {statement.strip()}"
            ) from error
