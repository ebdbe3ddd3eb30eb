"""Read transactions on a Postgres database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from projections.store import Argument, Checkpoint, Row
from projections.stores.names import CHECKPOINTS
from projections.stores.postgres import writing
from projections.stores.postgres.connection import DatabaseAddress, translated, without_nul
from projections.stores.postgres.pool import ConnectionPool

LONG = 60.0
"""Seconds for a query that reads much."""
_BEGIN = f"""
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    LOCK TABLE {CHECKPOINTS} IN ACCESS SHARE MODE"""
"""Copies do not replace the tables in this transaction, and its snapshot is taken after the lock."""


@asynccontextmanager
async def transaction(address: DatabaseAddress, pool: ConnectionPool) -> AsyncIterator[PostgresReadTransaction]:
    """See `projections.store.Reader.transaction`."""
    async with AsyncExitStack() as stack:
        with translated(address):
            connection = await stack.enter_async_context(pool.borrowed(in_transaction=True))
            await connection.execute(_BEGIN)
            reading = PostgresReadTransaction(address, connection, await writing.read_checkpoints(connection))
        yield reading


class PostgresReadTransaction:
    """See `projections.store.ReadTransaction`. The driver cancels the statement of a caller that is cancelled."""

    dialect = "postgres"

    def __init__(self, address: DatabaseAddress, connection: Any, checkpoints: Mapping[str, Checkpoint]) -> None:
        self.checkpoints = checkpoints
        self._address = address
        self._connection = connection
        self._turn = asyncio.Lock()

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch`."""
        return await self._fetch(sql, arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """See `projections.store.Queryable.fetch_one`."""
        return next(iter(await self._fetch(sql, arguments)), None)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch_in_thread`."""
        return await self._fetch(sql, arguments, timeout=LONG)

    async def _fetch(self, sql: str, arguments: tuple[Argument, ...], **options: float) -> Sequence[Row]:
        async with self._turn:
            with translated(self._address, asked=True):
                return [dict(row) for row in await self._connection.fetch(sql, *map(without_nul, arguments), **options)]
