"""The statements of a batch: the last change of each row, in as few and as large statements as possible."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

import attrs

from projections.errors import RowRefused
from projections.model import Table, timestamp_text
from projections.projector.batch import Rows
from projections.store import Checkpoint, Mark, Parked, Place
from projections.stores.names import CHECKPOINT_COLUMNS, CHECKPOINTS, MARKS, PARKED, PARKED_COLUMNS, SCRUBS, on_conflict, quoted

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
