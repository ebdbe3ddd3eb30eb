"""Writing a Postgres database: one process at a time, on one connection; a batch with its checkpoints in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import structlog

from projections.errors import MigrationError, NotLeading, RowRefused, StoreForeign
from projections.model import Projection
from projections.projector.batch import judge, last_changes
from projections.rebuild.copies import CopyPart
from projections.store import NOTHING_PARKED, CheckpointOutcome, Mark, Parked, Place, SchemaVersion, Step
from projections.stores.names import changed_by
from projections.stores.postgres import lease, schema, switching, writing
from projections.stores.postgres.connection import connect_postgres, translated
from projections.stores.postgres.election import MIGRATION, PostgresElection
from projections.stores.postgres.reader import PostgresReader

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
                    if await schema.is_foreign(connection):
                        raise StoreForeign(
                            f"{self.address} has the tables of another program, and is left as it was: choose an empty database"
                        )
                    await schema.check_format(connection, self.address)
                    await schema.create_system_tables(connection)
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
        batch = writing.RowBatch([pair for step in steps for pair in last_changes(step)], parked)
        async with self._turn() as writer:
            try:
                return await self._advance(writer, steps, batch, marks)
            except asyncpg.CharacterNotInRepertoireError:
                return await self._advance(writer, steps, batch.without_nuls(), marks)

    async def _advance(
        self, writer: Any, steps: Sequence[Step], batch: writing.RowBatch, marks: Sequence[Mark]
    ) -> CheckpointOutcome:
        async with writer.transaction():
            outcome = judge(steps, await writing.read_checkpoints(writer, locked=True))
            if outcome is CheckpointOutcome.STORED:
                await writing.write(writer, batch)
                after = [step.after for step in steps]
                await writing.write_checkpoints(writer, after, self._election.channel, self._election.token, marks)
        return outcome

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections and remove their checkpoints, in one transaction. Raises NotLeading."""
        async with self._turn() as writer, writer.transaction():
            for projection in reversed(projections):
                await writing.forget(writer, projection.name, [table.name for table in reversed(projection.tables)])
            await lease.check(writer, self._election.token)

    async def keep_scrubs(self, stream: str, state: str) -> None:
        """Keep the state of the passes over a log. Raises NotLeading."""
        async with self._turn() as writer, writer.transaction():
            await writing.write_scrubs(writer, stream, state)
            await lease.check(writer, self._election.token)

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
            await schema.leave_out(writer, [table.name for projection in projections for table in projection.tables])

    async def make_indexes(self) -> None:
        """Make the indexes that have been left out. Raises NotLeading."""
        async with self._turn() as writer:
            await schema.make(writer)

    async def switch(self, projections: Collection[str], part: CopyPart = CopyPart.NEW) -> None:
        """Put a copy (`PostgresCopies`) in the place of the live tables, which are kept as the other part.

        See `projections.rebuild.copies.Switching`. Raises NotLeading where another process writes.
        """
        async with self._turn() as writer:
            await switching.change_places(writer, part, projections, self._election.channel, self._election.token)

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
    if await schema.read_version(connection) != before:
        return None
    await schema.make(connection)
    old, tables = await schema.shapes(connection, projections), await schema.read_tables(connection)
    try:
        await connection.execute(f"{sql}\n; SELECT 1")  # the driver fails if there is no statement at all
    except asyncpg.PostgresError as error:
        if not (error.sqlstate or "").startswith("42"):
            raise
        raise MigrationError(f"a statement of the migration failed, it had no effect: {error}") from error
    new = await schema.shapes(connection, projections)
    changed = changed_by(projections, old, new)
    for projection in reversed(changed):
        left = [table.name for table in reversed(projection.tables) if table.name in new]
        await writing.forget(connection, projection.name, left)
    await schema.write_version(connection, after)
    await schema.mark_new_tables(connection, tables)
    return [projection.name for projection in changed]
