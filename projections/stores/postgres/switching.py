"""Replacing the live tables by the tables of a copy, which is in a schema next to the live one.

The tables move (`ALTER TABLE ... SET SCHEMA`), under locks that keep every statement away until the transaction ends. So
sessions need no notice: a statement that waits, and one that was prepared, finds the table that has the name then
(https://www.postgresql.org/docs/current/sql-prepare.html: it is analysed again when its objects have changed), and as all
tables are locked before one of them moves, no statement sees a mixture.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import asyncpg

from projections.errors import CopyRefused, StoreInUse
from projections.rebuild.copies import CopyPart, check_as_far
from projections.store import Checkpoint
from projections.stores.names import quoted
from projections.stores.postgres import lease, schema, writing
from projections.stores.postgres.election import KEY, KEY_WITHIN, LEADER, MIGRATION

_ATTEMPT = "50ms"
"""How long one attempt waits for the statements under way; statements that begin in this time wait behind it."""
_UPKEEP = "3s"
"""How long an attempt waits for upkeep of the tables, which holds up no statement. Postgres ends an autovacuum for a session that
waits for it for `deadlock_timeout`, 1 s unless it is set (its documentation, section 25.1.6)."""
_PAUSE = 0.1
"""Seconds between two attempts, for the others."""
_PATIENCE = 4.0
"""Seconds after which the switch is given up, since the projector waits for it."""

_THERE = """
SELECT n.nspname AS name FROM pg_namespace AS n WHERE n.nspname = ANY ($1) AND obj_description(n.oid, 'pg_namespace') = $2
"""
_GRANTS = """
SELECT c.relname AS table, a.privilege_type AS privilege, a.is_grantable AS further,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace, aclexplode(c.relacl) AS a
WHERE n.nspname = $1 AND c.relname = ANY ($2) AND a.grantee <> c.relowner
"""


def schema_of(live: str, part: CopyPart) -> str:
    """The schema of a copy of the tables in the schema `live`."""
    return f"{live}__{part.value}"


async def parts_there(connection: Any, live: str) -> Collection[CopyPart]:
    """The copies that there are."""
    names = {schema_of(live, part): part for part in CopyPart}
    return sorted(names[row["name"]] for row in await connection.fetch(_THERE, list(names), schema.MARK))


async def make_schema(connection: Any, name: str) -> None:
    """Make the schema of a copy. Raises CopyRefused if the right to is missing, or a schema of that name is not ours."""
    try:
        await connection.execute(f"CREATE SCHEMA {quoted(name)}; COMMENT ON SCHEMA {quoted(name)} IS '{schema.MARK}'")
    except asyncpg.DuplicateSchemaError as error:
        raise CopyRefused(f"there is a schema {name} that this program has not made: give it another name") from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise CopyRefused(
            f"schema {name} cannot be made, {error}: give the user the right (GRANT CREATE ON DATABASE ... TO ...)"
        ) from error


async def remove_schema(connection: Any, name: str) -> None:
    """Remove the schema of a copy with its tables. Raises CopyRefused if something else rests on them."""
    tables = ", ".join(f"{quoted(name)}.{quoted(table.name)}" for table in await schema.read_tables(connection, name))
    try:
        await connection.execute(f"{f'DROP TABLE {tables};' if tables else ''} DROP SCHEMA {quoted(name)}")
    except asyncpg.DependentObjectsStillExistError as error:
        raise CopyRefused(f"schema {name} cannot be removed, something is made of its tables: {error.detail or error}") from error


async def keep_closed(connection: Any, name: str) -> None:
    """Wait until no process has the copy in this schema open to write to it, and keep it so to the end of the transaction."""
    await connection.execute(f"SELECT pg_advisory_xact_lock({KEY_WITHIN})", LEADER, name)


async def change_places(connection: Any, part: CopyPart, projections: Collection[str], channel: str, token: int) -> None:
    """Replace the live tables by the tables of a copy, the other part. `connection` is the one that writes.

    Raises NotLeading if `token` is not the newest, CopyRefused, StoreInUse, PostgresError, without an effect.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            async with connection.transaction():
                await _change_places(connection, part, projections, channel)
                await lease.check(connection, token)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            if time.monotonic() > end:
                raise StoreInUse(f"the tables are being read for more than {_PATIENCE:g} s: try again") from error
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _change_places(connection: Any, part: CopyPart, projections: Collection[str], channel: str) -> None:
    begin = f"SELECT current_schema(), set_config('lock_timeout', $2, true), pg_advisory_xact_lock({KEY})"
    live = await connection.fetchval(begin, MIGRATION, _ATTEMPT)
    other = CopyPart.OLD if part is CopyPart.NEW else CopyPart.NEW
    source, target = schema_of(live, part), schema_of(live, other)
    there = await parts_there(connection, live)
    if part not in there:
        raise CopyRefused(
            "there is no copy: `projections rebuild` makes one" if part is CopyPart.NEW else "there are no old tables"
        )
    for each in there:
        await keep_closed(connection, schema_of(live, each))
    await connection.execute("; ".join(f"DROP TABLE IF EXISTS {quoted(source)}.{name}" for name in schema.FIXED))
    coming = [table.name for table in await schema.read_tables(connection, source)]
    tables = [table for table in await schema.read_tables(connection, live) if table.name not in schema.FIXED]
    going = [table.name for table in tables if table.ours or table.name in coming]
    held = [f"{quoted(live)}.{quoted(name)}" for name in going] + [f"{quoted(source)}.{quoted(name)}" for name in coming]
    await _lock(connection, held, "SHARE UPDATE EXCLUSIVE", _UPKEEP)
    await _lock(connection, held, "ACCESS EXCLUSIVE", _ATTEMPT)
    await _carry_checkpoints(connection, source, projections)
    if other in there:
        await remove_schema(connection, target)
    await make_schema(connection, target)
    grants = await _grants(connection, live, [name for name in going if name in coming])
    moves = [_move(live, name, target) for name in going] + [_move(source, name, live) for name in coming]
    await connection.execute("; ".join([*moves, *grants, f"DROP SCHEMA {quoted(source)}"]))
    await connection.execute("SELECT pg_notify($1, '{}')", channel)


async def _lock(connection: Any, tables: Sequence[str], mode: str, within: str) -> None:
    await connection.execute(f"SET LOCAL lock_timeout = '{within}'; LOCK TABLE {', '.join(tables)} IN {mode} MODE")


def _move(before: str, table: str, after: str) -> str:
    return f"ALTER TABLE {quoted(before)}.{quoted(table)} SET SCHEMA {quoted(after)}"


async def _carry_checkpoints(connection: Any, source: str, projections: Collection[str]) -> None:
    live = await writing.read_checkpoints(connection)
    check_as_far(projections, live, await writing.read_checkpoints(connection, within=source))
    await writing.keep_checkpoints(connection, source, projections, _others(live, projections))


def _others(checkpoints: Mapping[str, Checkpoint], projections: Collection[str]) -> Sequence[Checkpoint]:
    return [checkpoint for name, checkpoint in checkpoints.items() if name not in projections]


async def _grants(connection: Any, live: str, tables: Sequence[str]) -> Sequence[str]:
    """Return the statements that give a new table the grants of the live table that it replaces."""
    rows = await connection.fetch(_GRANTS, live, tables)
    return [
        f"GRANT {row['privilege']} ON {quoted(live)}.{quoted(row['table'])} TO {row['role']}"
        f"{' WITH GRANT OPTION' if row['further'] else ''}"
        for row in rows
    ]
