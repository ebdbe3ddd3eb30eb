"""What a batch writes: the last change of each row, in as few statements as there can be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import attrs
import msgspec

from projections.model import Table
from projections.projector.batch import Rows
from projections.store import KEYS, Checkpoint, KeyRecord, Parked, Place
from projections.stores.postgres.connection import quoted, without_nul
from projections.stores.postgres.schema import CHECKPOINTS, PARKED, PARKED_COLUMNS, TYPES

FEW = 200
"""Rows up to which each is a statement, sent one behind the other. More are copied into a table of the transaction first: that
takes two thirds of the processor time where there are thousands."""

_encode = msgspec.json.Encoder().encode


@attrs.frozen
class RowBatch:
    """What is written with the checkpoints."""

    tables: Sequence[tuple[Table, Rows]]
    keys: Sequence[KeyRecord]
    parked: Mapping[Place, Parked | None]

    def without_nuls(self) -> RowBatch:
        """The same, with every text as Postgres can hold it."""
        tables = [(table, {_tidy(key): row and _tidy(row) for key, row in rows.items()}) for table, rows in self.tables]
        keys = [KeyRecord(*_tidy(attrs.astuple(record))) for record in self.keys]
        parked = {
            place: one and Parked(**{k: without_nul(v) for k, v in attrs.asdict(one).items()})
            for place, one in self.parked.items()
        }
        return RowBatch(tables, keys, parked)


def _tidy(value: Any) -> Any:
    return tuple(map(without_nul, value)) if isinstance(value, tuple) else without_nul(value)


async def write(connection: Any, batch: RowBatch) -> None:
    """Put rows in the order of the tables, delete in the reverse order, record keys (the first use of each stays), park."""
    for table, rows in batch.tables:
        await _put(connection, table, [row for row in rows.values() if row is not None])
    for table, rows in reversed(batch.tables):
        gone = [key if len(table.key) > 1 else (key,) for key, row in rows.items() if row is None]
        if gone:
            await connection.execute(_delete(table), *map(list, zip(*gone, strict=True)))
    first: dict[str, tuple[Any, ...]] = {}
    for record in batch.keys:
        first.setdefault(record.key, attrs.astuple(record))
    await _put(connection, KEYS, list(first.values()))
    await _write_parked(connection, batch.parked)


async def _put(connection: Any, table: Table, rows: list[tuple[Any, ...]]) -> None:
    if len(rows) == 1:
        await connection.execute(_upsert(table), *rows[0])
    elif len(rows) <= FEW:
        if rows:
            await connection.executemany(_upsert(table), rows)
    else:
        await connection.execute(_make_copy(table))
        await connection.copy_records_to_table(_copy_of(table), records=rows, columns=table.names)
        await connection.execute(_take_copy(table))


async def read_checkpoints(connection: Any, *, locked: bool = False, within: str | None = None) -> dict[str, Checkpoint]:
    """All checkpoints, by projection; `locked`: until the end of the transaction; `within` another schema."""
    table = CHECKPOINTS if within is None else f"{quoted(within)}.{CHECKPOINTS}"
    sql = f"SELECT projection, version, incarnation, sequence, applied FROM {table}"  # noqa: S608 - quoted
    rows = await connection.fetch(f"{sql} FOR UPDATE" if locked else sql)
    return {
        projection: Checkpoint(
            projection=projection, version=version, incarnation=incarnation, sequence=sequence, applied=applied
        )
        for projection, version, incarnation, sequence, applied in rows
    }


async def read_parked(connection: Any) -> Sequence[Parked]:
    """What is parked, by projection and sequence."""
    columns = ", ".join(PARKED_COLUMNS)
    rows = await connection.fetch(f"SELECT {columns} FROM {PARKED} ORDER BY projection, sequence")  # noqa: S608 - constants
    return [Parked(**{**row, "at": _time(row["at"])}) for row in rows]


async def _write_parked(connection: Any, parked: Mapping[Place, Parked | None]) -> None:
    for place in parked:
        await connection.execute(f"DELETE FROM {PARKED} WHERE projection = $1 AND subject = $2", *place)  # noqa: S608 - a constant
    rows = [attrs.astuple(one) for one in parked.values() if one is not None]
    if rows:
        await connection.copy_records_to_table(PARKED, records=rows, columns=PARKED_COLUMNS)


def _time(value: datetime | str) -> datetime:
    """A time, as one connection or the other gives it."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


async def keep_checkpoints(connection: Any, within: str, own: Collection[str], others: Iterable[Checkpoint]) -> None:
    """Keep the checkpoints of some projections in another schema, and have those of all others be these."""
    table = f"{quoted(within)}.{CHECKPOINTS}"
    await connection.execute(f"DELETE FROM {table} WHERE projection <> ALL ($1)", list(own))  # noqa: S608 - quoted
    rows = [(c.projection, c.version, c.incarnation, c.sequence, c.applied) for c in others]
    columns = "projection, version, incarnation, sequence, applied"
    await connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ($1, $2, $3, $4, $5)", rows)  # noqa: S608 - quoted


_MOVE = f"""
WITH moved AS (
    INSERT INTO {CHECKPOINTS} (projection, version, incarnation, sequence, applied)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
    ON CONFLICT (projection) DO UPDATE SET
        version = excluded.version, incarnation = excluded.incarnation, sequence = excluded.sequence, applied = excluded.applied
)
SELECT pg_notify($6, $7)
"""  # noqa: S608 - a constant


async def write_checkpoints(connection: Any, checkpoints: Sequence[Checkpoint], channel: str) -> None:
    """Move checkpoints, and tell who listens on `channel` when that can be seen: sequences by projection, as JSON."""
    rows = [(c.projection, c.version, c.incarnation, c.sequence, c.applied) for c in checkpoints]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    news = _encode({checkpoint.projection: checkpoint.sequence for checkpoint in checkpoints}).decode()
    await connection.execute(_MOVE, *map(list, columns), channel, news)


async def forget(connection: Any, projection: str, tables: Iterable[str]) -> None:
    """Remove a checkpoint and what is parked, and empty the tables, which are given in an order in which they may be."""
    for table in tables:
        await connection.execute(f"DELETE FROM {quoted(table)}")  # noqa: S608 - quoted
    for table in (CHECKPOINTS, PARKED):
        await connection.execute(f"DELETE FROM {table} WHERE projection = $1", projection)  # noqa: S608 - constants


def _copy_of(table: Table) -> str:
    return f"batch of {table.name}"


@lru_cache
def _make_copy(table: Table) -> str:
    columns = ", ".join(f"{quoted(column.name)} {TYPES[column.type]}" for column in table.columns)
    return f"CREATE TEMPORARY TABLE {quoted(_copy_of(table))} ({columns}) ON COMMIT DROP"


@lru_cache
def _take_copy(table: Table) -> str:
    return f"{_insert(table)} SELECT * FROM {quoted(_copy_of(table))} {_on_conflict(table)}"  # noqa: S608 - quoted


@lru_cache
def _upsert(table: Table) -> str:
    places = ", ".join(f"${number}" for number in range(1, len(table.names) + 1))
    return f"{_insert(table)} VALUES ({places}) {_on_conflict(table)}"


def _insert(table: Table) -> str:
    return f"INSERT INTO {quoted(table.name)} ({', '.join(map(quoted, table.names))})"


def _on_conflict(table: Table) -> str:
    others = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.changing)
    action = f"UPDATE SET {others}" if others and table is not KEYS else "NOTHING"
    return f"ON CONFLICT ({', '.join(map(quoted, table.key))}) DO {action}"


@lru_cache
def _delete(table: Table) -> str:
    types = {column.name: TYPES[column.type] for column in table.columns}
    columns = ", ".join(map(quoted, table.key))
    arrays = ", ".join(f"${number}::{types[name]}[]" for number, name in enumerate(table.key, start=1))
    return f"DELETE FROM {quoted(table.name)} WHERE ({columns}) IN (SELECT * FROM unnest({arrays}))"  # noqa: S608 - quoted
