"""Copies of the tables in a schema: schemas next to it, `<schema>__new` and `<schema>__old`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

from projections.errors import CopyRefused, NotLeading, ProjectionError, StoreInUse, StoreUnavailable
from projections.rebuild.copies import CopyPart
from projections.store import NOTHING_PARKED, CheckpointOutcome, Mark, Parked, Place, Step
from projections.stores.postgres import switching
from projections.stores.postgres.connection import QUERY_TIMEOUT, DatabaseAddress, connect_postgres, translated
from projections.stores.postgres.election import KEY, MIGRATION, PostgresElection
from projections.stores.postgres.reader import PostgresReader
from projections.stores.postgres.store import WRITE_TIMEOUT, PostgresStore

_PATIENCE = 3.0
"""Seconds to wait for another process to give a copy up: a session ends a second after its process at the latest."""
_POLL = 0.05
_MANY = 20_000
"""Number of changes after which the planner gets new statistics before the tables are read: it would take a table that was just
filled for an empty one until the server has looked by itself."""


class PostgresCopies:
    """The copies of the tables at an address: `projections.rebuild.copies.Copies`.

    To make one, the user has to be allowed to make schemas in the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = DatabaseAddress(url)

    async def there(self) -> Collection[CopyPart]:
        """Which there are."""
        async with _beside(self._address) as (connection, live):
            return await switching.parts_there(connection, live)

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
            if part in await switching.parts_there(connection, live):
                name = switching.schema_of(live, part)
                await connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE:g}s'")
                try:
                    await switching.keep_closed(connection, name)
                    await switching.remove_schema(connection, name)
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
        name = switching.schema_of(live, part)
        if make:
            await connection.execute(f"SELECT pg_advisory_xact_lock({KEY})", MIGRATION)
        if part not in await switching.parts_there(connection, live):
            if not make:
                raise CopyRefused("there is no copy" if part is CopyPart.NEW else "there are no old tables")
            await switching.make_schema(connection, name)
        return address.within(name)
