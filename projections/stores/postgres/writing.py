"""The statements of a batch: the last change of each row, in as few statements as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import attrs
import msgspec

from projections.errors import RowRefused
from projections.model import Table
from projections.projector.batch import Rows
from projections.store import Checkpoint, Mark, Parked, Place
from projections.stores.names import CHECKPOINT_COLUMNS, CHECKPOINTS, MARKS, PARKED, PARKED_COLUMNS, SCRUBS, on_conflict, quoted
from projections.stores.postgres.connection import without_nul
from projections.stores.postgres.lease import fenced, renewal
from projections.stores.postgres.schema import TYPES

FEW = 200
"""Rows up to which each is a statement, sent one behind the other. More are copied into a table of the transaction first: that
takes two thirds of the processor time if there are thousands."""

_encode = msgspec.json.Encoder().encode


@attrs.frozen
class RowBatch:
    """The values that are written with the checkpoints."""

    tables: Sequence[tuple[Table, Rows]]
    parked: Mapping[Place, Parked | None]

    def without_nuls(self) -> RowBatch:
        """The same, with every text as Postgres can hold it."""
        tables = [(table, {_tidy(key): row and _tidy(row) for key, row in rows.items()}) for table, rows in self.tables]
        parked = {
            place: one and Parked(**{k: without_nul(v) for k, v in attrs.asdict(one).items()})
            for place, one in self.parked.items()
        }
        return RowBatch(tables, parked)


def _tidy(value: Any) -> Any:
    return tuple(map(without_nul, value)) if isinstance(value, tuple) else without_nul(value)


async def write(connection: Any, batch: RowBatch) -> None:
    """Put rows in the order of the tables, delete in the reverse order, park."""
    for table, rows in batch.tables:
        await _put(connection, table, [row for row in rows.values() if row is not None])
    for table, rows in reversed(batch.tables):
        gone = [key if len(table.key) > 1 else (key,) for key, row in rows.items() if row is None]
        if gone:
            await connection.execute(_delete(table), *map(list, zip(*gone, strict=True)))
    await _write_parked(connection, batch.parked)


async def _put(connection: Any, table: Table, rows: list[tuple[Any, ...]]) -> None:
    for place in _integers(table):
        if any(type(row[place]) is float for row in rows):
            raise RowRefused(
                f"column {table.names[place]!r} of table {table.name!r} is an integer, and a row has a fraction for it"
            )
    if len(rows) == 1:
        await connection.execute(_upsert(table), *rows[0])
    elif len(rows) <= FEW:
        if rows:
            await connection.executemany(_upsert(table), rows)
    else:
        await connection.execute(_make_copy(table))
        await connection.copy_records_to_table(_copy_of(table), records=rows, columns=table.names)
        await connection.execute(_take_copy(table))


@lru_cache
def _integers(table: Table) -> Sequence[int]:
    """The places of a table's integer columns: the driver cuts off the fraction of a number without an error."""
    return [place for place, column in enumerate(table.columns) if column.type == "integer"]


async def read_checkpoints(connection: Any, *, locked: bool = False, within: str | None = None) -> dict[str, Checkpoint]:
    """All checkpoints, by projection. `locked`: until the end of the transaction. `within`: in another schema."""
    columns, lock = ", ".join(CHECKPOINT_COLUMNS), " FOR UPDATE" if locked else ""
    rows = await connection.fetch(f"SELECT {columns} FROM {_named(CHECKPOINTS, within)}{lock}")  # noqa: S608 - quoted
    return {row["projection"]: Checkpoint(**row) for row in rows}


def _named(table: str, within: str | None) -> str:
    return table if within is None else f"{quoted(within)}.{table}"


async def read_marks(connection: Any, stream: str, above: int) -> Sequence[Mark]:
    """The marks of a stream above a sequence, in order."""
    sql = f"SELECT stream, sequence, digest, record FROM {MARKS} WHERE stream = $1 AND sequence > $2 ORDER BY sequence"  # noqa: S608 - a constant
    return [Mark(*row) for row in await connection.fetch(sql, stream, above)]


async def read_scrubs(connection: Any, stream: str) -> str | None:
    """The state of the passes over a log."""
    state: str | None = await connection.fetchval(f"SELECT state FROM {SCRUBS} WHERE stream = $1", stream)  # noqa: S608 - a constant
    return state


async def write_scrubs(connection: Any, stream: str, state: str) -> None:
    """Keep the state of the passes over a log."""
    sql = f"INSERT INTO {SCRUBS} VALUES ($1, $2) ON CONFLICT (stream) DO UPDATE SET state = excluded.state"  # noqa: S608 - a constant
    await connection.execute(sql, stream, state)


async def read_parked(connection: Any) -> Sequence[Parked]:
    """The parked aggregates, by projection and sequence."""
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
    """Keep the checkpoints of some projections in another schema, and replace the checkpoints of all others by these."""
    table = _named(CHECKPOINTS, within)
    await connection.execute(f"DELETE FROM {table} WHERE projection <> ALL ($1)", list(own))  # noqa: S608 - quoted
    places = ", ".join(f"${place}" for place in range(1, len(CHECKPOINT_COLUMNS) + 1))
    sql = f"INSERT INTO {table} ({', '.join(CHECKPOINT_COLUMNS)}) VALUES ({places})"  # noqa: S608 - quoted
    await connection.executemany(sql, [attrs.astuple(checkpoint) for checkpoint in others])


_MOVE = f"""
WITH renewed AS (
    {renewal("$1")}
), moved AS (
    INSERT INTO {CHECKPOINTS} ({", ".join(CHECKPOINT_COLUMNS)})
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[])
    ON CONFLICT (projection) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in CHECKPOINT_COLUMNS[1:])}
), marked AS (
    INSERT INTO {MARKS} (stream, sequence, digest, record)
    SELECT * FROM unnest($9::text[], $10::bigint[], $11::text[], $12::text[])
    ON CONFLICT DO NOTHING
)
SELECT pg_notify($13, $14) FROM renewed
"""  # noqa: S608 - constants


async def write_checkpoints(
    connection: Any, checkpoints: Sequence[Checkpoint], channel: str, token: int, marks: Sequence[Mark] = ()
) -> None:
    """Move checkpoints, write marks, and notify the listeners on `channel`.

    They are given the sequences by projection, as JSON.
    One statement for all: each more would cost a transaction half of its time.
    Raises NotLeading if `token` is not the newest: the transaction has to be rolled back then.
    """
    moved = _columns(checkpoints, len(CHECKPOINT_COLUMNS))
    news = _encode({checkpoint.projection: checkpoint.sequence for checkpoint in checkpoints}).decode()
    if not await connection.fetch(_MOVE, token, *moved, *_columns(marks, len(attrs.fields(Mark))), channel, news):
        raise fenced()


def _columns(values: Sequence[Checkpoint] | Sequence[Mark], count: int) -> list[list[Any]]:
    rows = [attrs.astuple(value) for value in values]
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]


async def forget(connection: Any, projection: str, tables: Iterable[str]) -> None:
    """Remove a checkpoint and its parked aggregates, and empty the tables, given in an order that references allow."""
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
    return f"{_insert(table)} SELECT * FROM {quoted(_copy_of(table))} {on_conflict(table)}"  # noqa: S608 - quoted


@lru_cache
def _upsert(table: Table) -> str:
    places = ", ".join(f"${number}" for number in range(1, len(table.names) + 1))
    return f"{_insert(table)} VALUES ({places}) {on_conflict(table)}"


def _insert(table: Table) -> str:
    return f"INSERT INTO {quoted(table.name)} ({', '.join(map(quoted, table.names))})"


@lru_cache
def _delete(table: Table) -> str:
    types = {column.name: TYPES[column.type] for column in table.columns}
    columns = ", ".join(map(quoted, table.key))
    arrays = ", ".join(f"${number}::{types[name]}[]" for number, name in enumerate(table.key, start=1))
    return f"DELETE FROM {quoted(table.name)} WHERE ({columns}) IN (SELECT * FROM unnest({arrays}))"  # noqa: S608 - quoted
