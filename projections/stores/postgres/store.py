"""Writing a Postgres database: one process at a time, on one connection; a batch with its checkpoints in one transaction.

Copies of the tables are in schemas next to the live one, `<schema>__new` and `<schema>__old`. The tables of a copy replace the
live tables: they move (`ALTER TABLE ... SET SCHEMA`), under locks that keep every statement away until the transaction ends. So
sessions need no notice: a statement that waits, and one that was prepared, finds the table that has the name then
(https://www.postgresql.org/docs/current/sql-prepare.html: it is analysed again when its objects have changed), and as all
tables are locked before one of them moves, no statement sees a mixture.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import structlog

from projections.errors import (
    CopyRefused,
    MigrationError,
    NotLeading,
    ProjectionError,
    RowRefused,
    StoreForeign,
    StoreInUse,
    StoreUnavailable,
)
from projections.model import Projection
from projections.store import (
    NOTHING_PARKED,
    Checkpoint,
    CheckpointOutcome,
    CopyPart,
    Mark,
    Parked,
    Place,
    SchemaVersion,
    Step,
    check_as_far,
)
from projections.stores.common import changed_by, judge, last_changes, quoted
from projections.stores.postgres import statements
from projections.stores.postgres.connection import QUERY_TIMEOUT, DatabaseAddress, connect_postgres, translated
from projections.stores.postgres.election import KEY, KEY_WITHIN, LEADER, MIGRATION, PostgresElection
from projections.stores.postgres.reader import PostgresReader

_ATTEMPT = "50ms"
"""How long one attempt waits for the statements under way; statements that begin in this time wait behind it."""
_UPKEEP = "3s"
"""How long an attempt waits for upkeep of the tables, which holds up no statement. Postgres ends an autovacuum for a session that
waits for it for `deadlock_timeout`, 1 s unless it is set (its documentation, section 25.1.6)."""
_PAUSE = 0.1
"""Seconds between two attempts, for the others."""
_SWITCH_PATIENCE = 4.0
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
    return sorted(names[row["name"]] for row in await connection.fetch(_THERE, list(names), statements.MARK))


async def make_schema(connection: Any, name: str) -> None:
    """Make the schema of a copy. Raises CopyRefused if the right to is missing, or a schema of that name is not ours."""
    try:
        await connection.execute(f"CREATE SCHEMA {quoted(name)}; COMMENT ON SCHEMA {quoted(name)} IS '{statements.MARK}'")
    except asyncpg.DuplicateSchemaError as error:
        raise CopyRefused(f"there is a schema {name} that this program has not made: give it another name") from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise CopyRefused(
            f"schema {name} cannot be made, {error}: give the user the right (GRANT CREATE ON DATABASE ... TO ...)"
        ) from error


async def remove_schema(connection: Any, name: str) -> None:
    """Remove the schema of a copy with its tables. Raises CopyRefused if something else rests on them."""
    tables = ", ".join(f"{quoted(name)}.{quoted(table.name)}" for table in await statements.read_tables(connection, name))
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
    end = time.monotonic() + _SWITCH_PATIENCE
    while True:
        try:
            async with connection.transaction():
                await _change_places(connection, part, projections, channel)
                await statements.check(connection, token)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            if time.monotonic() > end:
                raise StoreInUse(f"the tables are being read for more than {_SWITCH_PATIENCE:g} s: try again") from error
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _change_places(connection: Any, part: CopyPart, projections: Collection[str], channel: str) -> None:
    begin = f"SELECT current_schema(), set_config('lock_timeout', $2, true), pg_advisory_xact_lock({KEY})"
    live = await connection.fetchval(begin, MIGRATION, _ATTEMPT)
    opposite = CopyPart.OLD if part is CopyPart.NEW else CopyPart.NEW
    source, target = schema_of(live, part), schema_of(live, opposite)
    there = await parts_there(connection, live)
    if part not in there:
        raise CopyRefused(
            "there is no copy: `projections rebuild` makes one" if part is CopyPart.NEW else "there are no old tables"
        )
    for each in there:
        await keep_closed(connection, schema_of(live, each))
    await connection.execute("; ".join(f"DROP TABLE IF EXISTS {quoted(source)}.{name}" for name in statements.FIXED))
    coming = [table.name for table in await statements.read_tables(connection, source)]
    tables = [table for table in await statements.read_tables(connection, live) if table.name not in statements.FIXED]
    going = [table.name for table in tables if table.ours or table.name in coming]
    held = [f"{quoted(live)}.{quoted(name)}" for name in going] + [f"{quoted(source)}.{quoted(name)}" for name in coming]
    await _lock(connection, held, "SHARE UPDATE EXCLUSIVE", _UPKEEP)
    await _lock(connection, held, "ACCESS EXCLUSIVE", _ATTEMPT)
    await _carry_checkpoints(connection, source, projections)
    if opposite in there:
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
    live = await statements.read_checkpoints(connection)
    check_as_far(projections, live, await statements.read_checkpoints(connection, within=source))
    await statements.keep_checkpoints(connection, source, projections, _others(live, projections))


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


log = structlog.get_logger(__name__)

WRITE_TIMEOUT = 300.0
"""Seconds for one statement of a batch."""
_LOCK_TIMEOUT = "10s"
"""How long a migration waits for a table that is in use. Later statements on the table wait behind it."""


class PostgresStore(PostgresReader):
    """A database that several processes have open, of which one writes: `projections.store.Store`.

    The connection that writes holds a lock (`PostgresElection`): a process that loses the connection loses the lock. Rows and
    checkpoints are as safe as the server's `synchronous_commit` makes them.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._election = PostgresElection(self.address, write_timeout=WRITE_TIMEOUT)
        self._writing = asyncio.Lock()

    @property
    def election(self) -> PostgresElection | None:
        """How it is shared with other processes."""
        return self._election

    async def open(self) -> None:
        """Connect, and make the tables of the store itself if they are missing.

        Raises StoreUnavailable, and StoreForeign for the tables of another program, which it leaves as they are.
        """
        with translated(self.address):
            connection = await connect_postgres(self.address)
            try:
                async with connection.transaction():
                    await self._election.lock(connection, MIGRATION)
                    if await statements.is_foreign(connection):
                        raise StoreForeign(
                            f"{self.address} has the tables of another program, and is left as it was: choose an empty database"
                        )
                    await statements.check_format(connection, self.address)
                    await statements.create_system_tables(connection)
            finally:
                await connection.close()
        await super().open()

    async def close(self) -> None:
        """Finish what is being written and disconnect."""
        async with self._writing:
            await self._election.release()
        await super().close()

    async def advance(
        self,
        steps: Sequence[Step],
        parked: Mapping[Place, Parked | None] = NOTHING_PARKED,
        marks: Sequence[Mark] = (),
    ) -> CheckpointOutcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`.

        Raises NotLeading where another process writes.
        """
        batch = statements.RowBatch([pair for step in steps for pair in last_changes(step)], parked)
        async with self._turn() as writer:
            try:
                return await self._advance(writer, steps, batch, marks)
            except asyncpg.CharacterNotInRepertoireError:
                return await self._advance(writer, steps, batch.without_nuls(), marks)

    async def _advance(
        self, writer: Any, steps: Sequence[Step], batch: statements.RowBatch, marks: Sequence[Mark]
    ) -> CheckpointOutcome:
        async with writer.transaction():
            outcome = judge(steps, await statements.read_checkpoints(writer, locked=True))
            if outcome is CheckpointOutcome.STORED:
                await statements.write(writer, batch)
                after = [step.after for step in steps]
                await statements.write_checkpoints(writer, after, self._election.channel, self._election.token, marks)
        return outcome

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections and remove their checkpoints, in one transaction. Raises NotLeading."""
        async with self._turn() as writer, writer.transaction():
            for projection in reversed(projections):
                await statements.forget(writer, projection.name, [table.name for table in reversed(projection.tables)])
            await statements.check(writer, self._election.token)

    async def keep_scrubs(self, stream: str, state: str) -> None:
        """Keep the state of the passes over a log. Raises NotLeading."""
        async with self._turn() as writer, writer.transaction():
            await statements.write_scrubs(writer, stream, state)
            await statements.check(writer, self._election.token)

    async def migrate(
        self, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
    ) -> Sequence[str] | None:
        """Run the statements of one migration and record its version, in one transaction."""
        try:
            with translated(self.address):
                connection = await connect_postgres(self.address, lock_timeout=_LOCK_TIMEOUT)
                try:
                    async with connection.transaction():
                        await connection.execute("SET LOCAL lock_timeout = 0")
                        await self._election.lock(connection, MIGRATION)
                        await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
                        return await _migrate(connection, sql, before, after, projections)
                finally:
                    with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                        await connection.close()
        except RowRefused as error:
            raise MigrationError(f"the rows there do not allow the migration, it had no effect: {error}") from error

    async def leave_indexes_out(self, projections: Sequence[Projection]) -> None:
        """Do without the indexes of empty tables that only queries need, until `make_indexes`. Raises NotLeading."""
        async with self._turn() as writer, writer.transaction():
            await statements.leave_out(writer, [table.name for projection in projections for table in projection.tables])

    async def make_indexes(self) -> None:
        """Make the indexes that have been left out. Raises NotLeading."""
        async with self._turn() as writer:
            await statements.make(writer)

    async def switch(self, projections: Collection[str], part: CopyPart = CopyPart.NEW) -> None:
        """Put a copy (`PostgresCopies`) in the place of the live tables, which are kept as the other part.

        See `projections.store.Switching`. Raises NotLeading where another process writes.
        """
        async with self._turn() as writer:
            await change_places(writer, part, projections, self._election.channel, self._election.token)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Any]:
        """The connection that writes, for one task at a time. Raises NotLeading."""
        async with self._writing:
            with translated(self.address):
                yield await self._writer()

    async def _writer(self) -> Any:
        self._opened()
        if not await self._election.take():
            raise NotLeading(f"{self.address} is brought up to date by another process")
        return self._election.connection


async def _migrate(
    connection: Any, sql: str, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
) -> Sequence[str] | None:
    if await statements.read_version(connection) != before:
        return None
    await statements.make(connection)
    old, tables = await statements.shapes(connection, projections), await statements.read_tables(connection)
    try:
        await connection.execute(f"{sql}\n; SELECT 1")  # the driver fails if there is no statement at all
    except asyncpg.PostgresError as error:
        if not (error.sqlstate or "").startswith("42"):
            raise
        raise MigrationError(f"a statement of the migration failed, it had no effect: {error}") from error
    new = await statements.shapes(connection, projections)
    changed = changed_by(projections, old, new)
    for projection in reversed(changed):
        left = [table.name for table in reversed(projection.tables) if table.name in new]
        await statements.forget(connection, projection.name, left)
    await statements.write_version(connection, after)
    await statements.mark_new_tables(connection, tables)
    return [projection.name for projection in changed]


_PATIENCE = 3.0
"""Seconds to wait for another process to give a copy up: a session ends a second after its process at the latest."""
_POLL = 0.05
_MANY = 20_000
"""Number of changes after which the planner gets new statistics before the tables are read: it would take a table that was just
filled for an empty one until the server has looked by itself."""


class PostgresCopies:
    """The copies of the tables at an address: `projections.store.Copies`.

    To make one, the user has to be allowed to make schemas in the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = DatabaseAddress(url)

    async def there(self) -> Collection[CopyPart]:
        """Which there are."""
        async with _beside(self._address) as (connection, live):
            return await parts_there(connection, live)

    def store(self, part: CopyPart) -> PostgresCopy:
        """A copy to write to."""
        return PostgresCopy(self._url, part)

    def reader(self, part: CopyPart) -> PostgresCopyReader:
        """A copy to look at."""
        return PostgresCopyReader(self._url, part)

    async def discard(self, part: CopyPart) -> None:
        """Remove a copy, if it is there."""
        async with _beside(self._address) as (connection, live), connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({KEY})", MIGRATION)
            if part in await parts_there(connection, live):
                name = schema_of(live, part)
                await connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE:g}s'")
                try:
                    await keep_closed(connection, name)
                    await remove_schema(connection, name)
                except asyncpg.LockNotAvailableError as error:
                    raise StoreInUse(f"schema {name} is in use by another process") from error


class PostgresCopy(PostgresStore):
    """A copy that this process alone writes to, see `PostgresCopies`. The new one is made if it is missing."""

    def __init__(self, url: str, part: CopyPart) -> None:
        super().__init__(url)
        self._live = self.address
        self._part = part
        self._changes = 0

    @property
    def election(self) -> None:
        """None: it belongs to one process while it is open."""

    async def open(self) -> None:
        """Connect. Raises CopyRefused if there is none, StoreInUse, StoreUnavailable."""
        self.address = await _copy_of(self._live, self._part, make=self._part is CopyPart.NEW)
        self._election = PostgresElection(self.address, write_timeout=WRITE_TIMEOUT)
        await super().open()
        try:
            await self._take()
        except BaseException:
            await self.close()
            raise

    async def _take(self) -> None:
        end = time.monotonic() + _PATIENCE
        while not await self._election.take():
            if time.monotonic() > end:
                raise StoreInUse(f"{self.address} is in use by another process")
            await asyncio.sleep(_POLL)

    async def advance(
        self,
        steps: Sequence[Step],
        parked: Mapping[Place, Parked | None] = NOTHING_PARKED,
        marks: Sequence[Mark] = (),
    ) -> CheckpointOutcome:
        """As every store."""
        self._changes += sum(len(step.changes) for step in steps)
        return await super().advance(steps, parked, marks)

    async def close(self) -> None:
        """Finish what is being written, let the planner look at it, and disconnect."""
        async with self._writing:
            writer = self._election.connection
            if writer is not None:
                with suppress(ProjectionError), translated(self.address):
                    if self._changes > _MANY:
                        await writer.execute("ANALYZE")
                    # The end of the session takes longer to be seen.
                    await writer.execute("SELECT pg_advisory_unlock_all()", timeout=QUERY_TIMEOUT)
        self._changes = 0
        await super().close()

    async def _writer(self) -> Any:
        try:
            return await super()._writer()
        except NotLeading as error:
            raise StoreInUse(str(error)) from error


class PostgresCopyReader(PostgresReader):
    """A copy to look at, see `PostgresCopies`."""

    def __init__(self, url: str, part: CopyPart) -> None:
        super().__init__(url)
        self._live = self.address
        self._part = part

    async def open(self) -> None:
        """Connect. Raises CopyRefused if there is none, StoreUnavailable."""
        self.address = await _copy_of(self._live, self._part, make=False)
        await super().open()


@asynccontextmanager
async def _beside(address: DatabaseAddress) -> AsyncIterator[tuple[Any, str]]:
    """A connection, and the schema of the live tables."""
    with translated(address):
        connection = await connect_postgres(address, command_timeout=WRITE_TIMEOUT)
        try:
            live = await connection.fetchval("SELECT current_schema()")
            if live is None:
                raise StoreUnavailable(f"{address}: there is no schema to make tables in: create a schema of `search_path`")
            yield connection, live
        finally:
            await connection.close()


async def _copy_of(address: DatabaseAddress, part: CopyPart, *, make: bool) -> DatabaseAddress:
    """The address of a copy; it is made if it is missing."""
    async with _beside(address) as (connection, live), connection.transaction():
        name = schema_of(live, part)
        if make:
            await connection.execute(f"SELECT pg_advisory_xact_lock({KEY})", MIGRATION)
        if part not in await parts_there(connection, live):
            if not make:
                raise CopyRefused("there is no copy" if part is CopyPart.NEW else "there are no old tables")
            await make_schema(connection, name)
        return address.within(name)
