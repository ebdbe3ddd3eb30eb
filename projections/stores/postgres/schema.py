"""The tables that every database has, and the descriptions of tables in the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from projections.model import COMMAND_KEYS, ColumnType, Projection, StoredColumn, Table, create_table
from projections.store import SchemaVersion
from projections.stores import names
from projections.stores.names import CHECKPOINTS, LEASE, LEFT_OUT, MARKS, MIGRATIONS, PARKED, SCRUBS, quoted
from projections.stores.postgres.connection import DatabaseAddress

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
    names.check_format(address, [row["name"] for row in await connection.fetch(_COLUMNS, CHECKPOINTS)])


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
    found = {}
    for table in (table for projection in projections for table in projection.tables):
        columns = await read_columns(connection, table.name)
        if columns:
            rows = await connection.fetchval(f"SELECT count(*) FROM {quoted(table.name)}")  # noqa: S608 - quoted
            identity = await connection.fetchval("SELECT to_regclass($1)::oid::bigint", quoted(table.name))
            found[table.name] = Shape(tuple((column.name, column.type) for column in columns), rows, identity)
    return found


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
