"""What a batch writes: the last change of each row, as few and as large statements as there can be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from projections.model import Put, Table, timestamp_text
from projections.sqlite.schema import CHECKPOINTS, quoted
from projections.store import KEYS, Checkpoint, KeyRecord, Outcome, Step

TOGETHER = 64
"""Rows that one statement puts. SQLite's module gives the interpreter's lock away with each statement, and gets it back up to
5 ms later where another thread is busy; and binding and resetting one by one cost a tenth of a replay."""

Rows = dict[Any, tuple[Any, ...] | None]
"""By key: the row, or None where it goes."""


def judge(steps: Iterable[Step], stored: Mapping[str, Checkpoint]) -> Outcome:
    """Whether the steps may be written on the checkpoints there are."""
    found = [(step, stored.get(step.projection.name)) for step in steps]
    if all(checkpoint == step.before for step, checkpoint in found):
        return Outcome.STORED
    if all(checkpoint == step.after for step, checkpoint in found):
        return Outcome.ALREADY
    return Outcome.MISMATCH


def last_changes(step: Step) -> Sequence[tuple[Table, Rows]]:
    """The last change of each row that a step changes, by table in the projection's order."""
    tables: dict[str, Rows] = {table.name: {} for table in step.projection.tables}
    for change in step.changes:
        table = change.table
        rows = tables[table.name]
        if isinstance(change, Put):
            rows[table.key_of(change.row)] = change.row
        else:
            rows[change.key if len(change.key) > 1 else change.key[0]] = None
    return [(table, tables[table.name]) for table in step.projection.tables if tables[table.name]]


def write_rows(connection: sqlite3.Connection, tables: Sequence[tuple[Table, Rows]]) -> None:
    """Put the rows in the order of the tables, then delete in the reverse order."""
    for table, rows in tables:
        _put(connection, table, _stored([row for row in rows.values() if row is not None], table.timestamps))
    for table, rows in reversed(tables):
        gone = [key if len(table.key) > 1 else (key,) for key, row in rows.items() if row is None]
        connection.executemany(_delete(table), gone)


def _put(connection: sqlite3.Connection, table: Table, rows: list[Any]) -> None:
    whole = len(rows) - len(rows) % TOGETHER
    for start in range(0, whole, TOGETHER):
        connection.execute(_upsert(table, TOGETHER), list(chain.from_iterable(rows[start : start + TOGETHER])))
    connection.executemany(_upsert(table, 1), rows[whole:])


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


def forget(connection: sqlite3.Connection, projection: str, tables: Iterable[str]) -> None:
    """Remove a checkpoint and empty the tables, which are given in an order in which they may be."""
    for table in tables:
        connection.execute(f"DELETE FROM {quoted(table)}")  # noqa: S608 - quoted
    connection.execute(f"DELETE FROM {CHECKPOINTS} WHERE projection = ?", (projection,))  # noqa: S608 - a constant


@lru_cache
def _upsert(table: Table, rows: int) -> str:
    columns = ", ".join(map(quoted, table.names))
    key = ", ".join(map(quoted, table.key))
    others = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.names if name not in table.key)
    action = f"UPDATE SET {others}" if others else "NOTHING"
    row = f"({', '.join('?' * len(table.names))})"
    places = ", ".join([row] * rows)
    return f"INSERT INTO {quoted(table.name)} ({columns}) VALUES {places} ON CONFLICT ({key}) DO {action}"  # noqa: S608 - quoted


@lru_cache
def _delete(table: Table) -> str:
    condition = " AND ".join(f"{quoted(name)} = ?" for name in table.key)
    return f"DELETE FROM {quoted(table.name)} WHERE {condition}"  # noqa: S608 - quoted
