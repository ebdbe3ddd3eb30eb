"""What a batch writes: the last change of each row, as few and as large statements as there can be."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

import attrs

from projections.model import Table, timestamp_text
from projections.projector.batch import Rows
from projections.store import KEYS, Checkpoint, KeyRecord, Parked, Place
from projections.stores.sqlite.schema import CHECKPOINTS, PARKED, PARKED_COLUMNS, quoted, read_columns

TOGETHER = (64, 16, 4, 1)
"""Rows that one statement puts: as many as there are, in as few statements as these sizes allow. SQLite's module gives the
interpreter's lock away with each statement, and gets it back up to 5 ms later where another thread is busy; and binding and
resetting one by one cost a tenth of a replay."""


def write_rows(connection: sqlite3.Connection, tables: Sequence[tuple[Table, Rows]]) -> None:
    """Put the rows in the order of the tables, then delete in the reverse order."""
    for table, rows in tables:
        _put(connection, table, _stored([row for row in rows.values() if row is not None], table.timestamps))
    for table, rows in reversed(tables):
        gone = [key if len(table.key) > 1 else (key,) for key, row in rows.items() if row is None]
        if gone:
            connection.executemany(_delete(table), gone)


def _put(connection: sqlite3.Connection, table: Table, rows: list[Any]) -> None:
    start = 0
    for size in TOGETHER:
        while len(rows) - start >= size:
            connection.execute(_upsert(table, size), list(chain.from_iterable(rows[start : start + size])))
            start += size


def _stored(rows: list[tuple[Any, ...]], timestamps: tuple[int, ...]) -> list[Any]:
    if not timestamps:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for index in timestamps:
            value = values[index]
            if value is not None:
                values[index] = timestamp_text(value)
        converted.append(values)
    return converted


def write_keys(connection: sqlite3.Connection, keys: Sequence[KeyRecord]) -> None:
    """Record idempotency keys: the first use of each stays."""
    if keys:
        connection.executemany(
            f"INSERT INTO {KEYS.name} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608 - a constant
            [(record.key, record.fingerprint, record.subject, record.sequence) for record in keys],
        )


def read_checkpoints(connection: sqlite3.Connection) -> dict[str, Checkpoint]:
    """All checkpoints, by projection."""
    rows = connection.execute(f"SELECT projection, version, incarnation, sequence, applied FROM {CHECKPOINTS}")  # noqa: S608 - a constant
    return {
        projection: Checkpoint(
            projection=projection, version=version, incarnation=incarnation, sequence=sequence, applied=applied
        )
        for projection, version, incarnation, sequence, applied in rows.fetchall()
    }


def write_checkpoints(connection: sqlite3.Connection, checkpoints: Iterable[Checkpoint]) -> None:
    """Move checkpoints."""
    connection.executemany(
        f"INSERT OR REPLACE INTO {CHECKPOINTS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - a constant
        [(c.projection, c.version, c.incarnation, c.sequence, c.applied) for c in checkpoints],
    )


def keep_checkpoints(connection: sqlite3.Connection, own: Collection[str], others: Iterable[Checkpoint]) -> None:
    """Keep the checkpoints of some projections, and have those of all others be these."""
    gone = [(name,) for name in read_checkpoints(connection) if name not in own]
    connection.executemany(f"DELETE FROM {CHECKPOINTS} WHERE projection = ?", gone)  # noqa: S608 - a constant
    write_checkpoints(connection, [checkpoint for checkpoint in others if checkpoint.projection not in own])


def read_parked(connection: sqlite3.Connection) -> Sequence[Parked]:
    """What is parked, by projection and sequence; nothing in a database that an older program has made."""
    if not read_columns(connection, PARKED):
        return []
    columns = ", ".join(PARKED_COLUMNS)
    rows = connection.execute(f"SELECT {columns} FROM {PARKED} ORDER BY projection, sequence")  # noqa: S608 - constants
    named = (dict(zip(PARKED_COLUMNS, row, strict=True)) for row in rows.fetchall())
    return [Parked(**values | {"at": datetime.fromisoformat(values["at"])}) for values in named]


def write_parked(connection: sqlite3.Connection, parked: Mapping[Place, Parked | None]) -> None:
    """Park aggregates, or take them away where there is None."""
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
    """Remove a checkpoint and what is parked, and empty the tables, which are given in an order in which they may be."""
    for table in tables:
        connection.execute(f"DELETE FROM {quoted(table)}")  # noqa: S608 - quoted
    for table in (CHECKPOINTS, PARKED):
        connection.execute(f"DELETE FROM {table} WHERE projection = ?", (projection,))  # noqa: S608 - a constant


@lru_cache
def _upsert(table: Table, rows: int) -> str:
    columns = ", ".join(map(quoted, table.names))
    key = ", ".join(map(quoted, table.key))
    others = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.changing)
    action = f"UPDATE SET {others}" if others else "NOTHING"
    row = f"({', '.join('?' * len(table.names))})"
    places = ", ".join([row] * rows)
    return f"INSERT INTO {quoted(table.name)} ({columns}) VALUES {places} ON CONFLICT ({key}) DO {action}"  # noqa: S608 - quoted


@lru_cache
def _delete(table: Table) -> str:
    condition = " AND ".join(f"{quoted(name)} = ?" for name in table.key)
    return f"DELETE FROM {quoted(table.name)} WHERE {condition}"  # noqa: S608 - quoted
