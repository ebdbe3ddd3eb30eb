"""The tables of a store itself, the descriptions of tables, the lease of the process that leads, and the statements of a batch.

The lease is a row with a fencing token, which is compared in the transaction of each checkpoint. The lock alone lives until its
session ends, and the session of a process that hangs continues. So the leader renews the row by the database's clock. A standby
ends the session of a leader whose lease has run out, takes the lock, and increments the token.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import attrs
import msgspec

from projections.errors import NotLeading, RowRefused
from projections.model import COMMAND_KEYS, ColumnType, Projection, StoredColumn, Table, create_table
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
    on_conflict,
    quoted,
)
from projections.stores.postgres.connection import QUERY_TIMEOUT, DatabaseAddress, without_nul

FIXED = (LEASE, SCRUBS)
"""The tables that stay with their schema when the others change places: the leader is the one of all, and the log is the same."""

_SYSTEM_TABLES = f"""
CREATE TABLE IF NOT EXISTS {CHECKPOINTS} (
    projection TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL,
    incarnation TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    applied BIGINT NOT NULL,
    record TEXT,
    digest TEXT
);
{create_table(COMMAND_KEYS, "postgres", if_missing=True)};
CREATE TABLE IF NOT EXISTS {PARKED} (
    projection TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    types TEXT NOT NULL,
    error TEXT NOT NULL,
    traceback TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    waiting BIGINT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (projection, subject)
);
CREATE TABLE IF NOT EXISTS {LEASE} (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    token BIGINT NOT NULL,
    holder TEXT NOT NULL,
    pid INTEGER NOT NULL,
    until TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS {MARKS} (
    stream TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    digest TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (stream, sequence)
);
CREATE TABLE IF NOT EXISTS {SCRUBS} (stream TEXT COLLATE "C" PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS {MIGRATIONS} (version BIGINT PRIMARY KEY, dirty BOOLEAN NOT NULL);
"""

_FOREIGN = f"""
SELECT to_regclass('{MIGRATIONS}') IS NOT NULL AND to_regclass('{CHECKPOINTS}') IS NULL
"""
"""Whether another program has made migrations here: the tables of the store itself come before the first migration."""

MARK = "Made from the event log by `projections`, which moves it and removes it."
"""The comment on tables and schemas that are ours. Everything else in a database stays unchanged."""

_TAKEN_BACK = "A migration was taken back."
_VERSION = f"""
SELECT version, dirty, col_description(tableoid, 1) IS NOT DISTINCT FROM '{_TAKEN_BACK}' AS taken_back FROM {MIGRATIONS}
"""  # noqa: S608 - constants

_TABLES = """
SELECT c.oid::bigint AS oid, c.relname AS name, obj_description(c.oid, 'pg_class') IS NOT DISTINCT FROM $2 AS ours
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = coalesce($1, current_schema()) AND c.relkind IN ('r', 'p') ORDER BY c.relname
"""

_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, array_position(i.indkey::int2[], a.attnum) AS key
FROM pg_attribute AS a LEFT JOIN pg_index AS i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

TYPES: Mapping[ColumnType, str] = {
    "text": "text",
    "integer": "bigint",
    "real": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamptz",
    "json": "json",
}
"""The type that a column of ours has in Postgres. Smaller numbers are not: a sequence must fit."""

_HOLDS: Mapping[str, frozenset[ColumnType]] = {
    "text": frozenset({"text", "json"}),
    "bigint": frozenset({"integer"}),
    "double precision": frozenset({"real"}),
    "boolean": frozenset({"boolean"}),
    "timestamp with time zone": frozenset({"timestamp"}),
    "json": frozenset({"json"}),
}


@attrs.frozen
class StoredTable:
    """A table that is there; `ours` if a migration or the store has made it."""

    oid: int
    name: str
    ours: bool


async def read_tables(connection: Any, name: str | None = None) -> Sequence[StoredTable]:
    """The tables in a schema, by name; without one the tables in the schema of the session."""
    return [StoredTable(**row) for row in await connection.fetch(_TABLES, name, MARK)]


async def mark_new_tables(connection: Any, before: Iterable[StoredTable]) -> None:
    """Mark the tables of the session's schema that are not among those before."""
    known = {table.oid for table in before}
    for table in await read_tables(connection):
        if table.oid not in known:
            await connection.execute(f"COMMENT ON TABLE {quoted(table.name)} IS '{MARK}'")


async def is_foreign(connection: Any) -> bool:
    """Whether the database has the tables of another program."""
    return bool(await connection.fetchval(_FOREIGN))


async def check_format(connection: Any, address: DatabaseAddress) -> None:
    """Check that the tables of the store itself are of this version. Raises StoreForeign."""
    common.check_format(address, [row["name"] for row in await connection.fetch(_COLUMNS, CHECKPOINTS)])


async def create_system_tables(connection: Any) -> None:
    """Make the tables of the store itself if they are missing."""
    before = await read_tables(connection)
    await connection.execute(_SYSTEM_TABLES)
    await mark_new_tables(connection, before)


async def read_version(connection: Any) -> SchemaVersion:
    """The last migration applied."""
    row = await connection.fetchrow(_VERSION)
    return SchemaVersion(row["version"], row["dirty"], row["taken_back"]) if row else SchemaVersion(0)


async def write_version(connection: Any, version: SchemaVersion) -> None:
    """Record the last migration applied."""
    await connection.execute(f"DELETE FROM {MIGRATIONS}")  # noqa: S608 - a constant
    await connection.execute(f"INSERT INTO {MIGRATIONS} VALUES ($1, $2)", version.version, version.dirty)  # noqa: S608 - a constant
    comment = f"'{_TAKEN_BACK}'" if version.taken_back else "NULL"
    await connection.execute(f"COMMENT ON COLUMN {MIGRATIONS}.version IS {comment}")


async def read_columns(connection: Any, table: str) -> Sequence[StoredColumn]:
    """The columns of a table in order, none if there is no such table."""
    return [
        StoredColumn(name=row["name"], type=row["type"].upper(), holds=_HOLDS.get(row["type"], frozenset()), key=row["key"])
        for row in await connection.fetch(_COLUMNS, quoted(table))
    ]


@attrs.frozen
class Shape:
    """The properties of a table whose change by a migration needs a refill: its columns, its number of rows."""

    columns: tuple[tuple[str, str], ...]
    rows: int
    identity: int
    """Of the table itself: a table that was dropped and created is another one, however alike."""


async def shapes(connection: Any, projections: Iterable[Projection]) -> dict[str, Shape]:
    """The shape of each table of the projections that there is, by its name."""
    by_name = {}
    for table in (table for projection in projections for table in projection.tables):
        columns = await read_columns(connection, table.name)
        if columns:
            rows = await connection.fetchval(f"SELECT count(*) FROM {quoted(table.name)}")  # noqa: S608 - quoted
            identity = await connection.fetchval("SELECT to_regclass($1)::oid::bigint", quoted(table.name))
            by_name[table.name] = Shape(tuple((column.name, column.type) for column in columns), rows, identity)
    return by_name


def order_of_keys(table: Table) -> str:
    """The ORDER BY that sorts a table by its key, text by its bytes."""
    texts = {column.name for column in table.columns if column.type == "text"}
    return ", ".join(f"{quoted(name)}{' COLLATE ' + quoted('C') if name in texts else ''}" for name in table.key)


_TIMEOUT = 3600.0
"""Seconds for one index."""

_TABLE = f'CREATE TABLE IF NOT EXISTS {LEFT_OUT} (name TEXT COLLATE "C" PRIMARY KEY, statement TEXT NOT NULL)'
_FOR_QUERIES = """
SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS statement FROM pg_index AS i
WHERE i.indrelid = to_regclass($1) AND NOT (i.indisunique OR i.indisexclusion) AND NOT EXISTS (
    SELECT FROM pg_constraint AS c WHERE c.conrelid = i.indrelid AND c.contype = 'f' AND i.indkey[0] = ANY (c.conkey)
)
"""
_LEAVE_OUT = f"INSERT INTO {LEFT_OUT} (name, statement) VALUES ($1, $2)"  # noqa: S608 - a constant
_NEXT = f"SELECT name, statement FROM {LEFT_OUT} LIMIT 1"  # noqa: S608 - a constant
_MADE = f"DELETE FROM {LEFT_OUT} WHERE name = $1"  # noqa: S608 - a constant


async def leave_out(connection: Any, tables: Iterable[str]) -> None:
    """Drop the indexes of empty tables that only queries need. `connection` has a transaction open.

    Unique indexes stay, and indexes that are looked into when a row goes that others refer to.
    """
    before = await read_tables(connection)
    await connection.execute(_TABLE)
    await mark_new_tables(connection, before)
    for table in tables:
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {quoted(table)})"):  # noqa: S608 - quoted
            continue
        for name, statement in await connection.fetch(_FOR_QUERIES, quoted(table)):
            await connection.execute(_LEAVE_OUT, name, statement)
            await connection.execute(f"DROP INDEX {name}")


async def make(connection: Any) -> None:
    """Make all that have been left out, each in a separate transaction, or in the one that `connection` has open."""
    if not await read_columns(connection, LEFT_OUT):
        return
    while (found := await connection.fetchrow(_NEXT)) is not None:
        async with connection.transaction():
            await connection.execute(found["statement"], timeout=_TIMEOUT)
            await connection.execute(_MADE, found["name"])
    await connection.execute(f"DROP TABLE {LEFT_OUT}")


SECONDS = 5.0
"""Seconds for which a lease lasts."""
RENEWED_EVERY = 1.0
"""Seconds between two heartbeats."""

_UNTIL = f"clock_timestamp() + interval '{SECONDS:g} s'"

_TAKE = f"""
INSERT INTO {LEASE} AS lease (one, token, holder, pid, until) VALUES (TRUE, 1, $1, pg_backend_pid(), {_UNTIL})
ON CONFLICT (one) DO UPDATE SET
    token = lease.token + 1, holder = excluded.holder, pid = excluded.pid, until = excluded.until
RETURNING token
"""  # noqa: S608 - constants

_LOOK = f"""
SELECT holder, extract(epoch FROM clock_timestamp() - until)::float8 AS over FROM {LEASE}
WHERE pid IN (
    SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) = {{key}}
)
"""  # noqa: S608 - constants
_END = f"SELECT pg_terminate_backend(pid) FROM {LEASE} WHERE until < clock_timestamp()"  # noqa: S608 - a constant


@attrs.frozen
class Leader:
    """The leader: `holder` names the process, `silent` are the seconds since its last heartbeat."""

    holder: str
    silent: float

    @property
    def hangs(self) -> bool:
        """Whether its lease has run out."""
        return self.silent > SECONDS


def renewal(parameter: str) -> str:
    """Renews the lease of the token in a parameter (`$1`), as SQL; no row: another process leads by now."""
    return f"UPDATE {LEASE} SET until = {_UNTIL} WHERE token = {parameter} RETURNING TRUE"  # noqa: S608 - constants


async def taken(connection: Any) -> int:
    """Take the lease for the session of `connection`, which has the lock: the new fencing token."""
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    return int(await connection.fetchval(_TAKE, holder, timeout=QUERY_TIMEOUT))


async def renew(connection: Any, token: int) -> bool:
    """Renew the lease; False if another process has it by now."""
    return bool(await connection.fetchval(renewal("$1"), token, timeout=QUERY_TIMEOUT))


async def check(connection: Any, token: int) -> None:
    """See, within a transaction and to its end, that the token is the newest. Raises NotLeading.

    It is the last statement of the transaction: heartbeats wait for the row from then on.
    """
    if not await renew(connection, token):
        raise fenced()


def fenced() -> NotLeading:
    """The error of a former leader."""
    return NotLeading("another process leads by now: this process wrote no row")


async def leader(connection: Any, key: str, what: str) -> Leader | None:
    """The leader, if it keeps a lease; None for a process of an older version. `key`, `what`: the lock it holds."""
    row = await connection.fetchrow(_LOOK.format(key=key), what, timeout=QUERY_TIMEOUT)
    return None if row is None else Leader(row["holder"], row["over"] + SECONDS)


async def end(connection: Any) -> None:
    """End the session of the leader whose lease has run out. Raises PostgresError if this user may not."""
    await connection.fetch(_END, timeout=QUERY_TIMEOUT)


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
