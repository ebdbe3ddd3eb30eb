"""Indexes that are left out while tables are filled: made of all rows at once they take a fraction of the time.

A temporary table next to the filled tables has their definitions, so a process that comes later can make them if this one is
killed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from projections.stores.names import LEFT_OUT, quoted
from projections.stores.postgres import schema

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
    before = await schema.read_tables(connection)
    await connection.execute(_TABLE)
    await schema.mark_new_tables(connection, before)
    for table in tables:
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {quoted(table)})"):  # noqa: S608 - quoted
            continue
        for name, statement in await connection.fetch(_FOR_QUERIES, quoted(table)):
            await connection.execute(_LEAVE_OUT, name, statement)
            await connection.execute(f"DROP INDEX {name}")


async def make(connection: Any) -> None:
    """Make all that have been left out, each in a separate transaction, or in the one that `connection` has open."""
    if not await schema.read_columns(connection, LEFT_OUT):
        return
    while (found := await connection.fetchrow(_NEXT)) is not None:
        async with connection.transaction():
            await connection.execute(found["statement"], timeout=_TIMEOUT)
            await connection.execute(_MADE, found["name"])
    await connection.execute(f"DROP TABLE {LEFT_OUT}")
