"""The connections on which queries are asked, taken in turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import asyncpg

from projections.stores.postgres.connection import DatabaseAddress, connect_pool

_PATIENCE = 10.0
"""Seconds that queries have to end when the pool is closed."""
_GONE = (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


class ConnectionPool:
    """Connections to one database. A query that fails or is cancelled does not wait until its connection is free again.

    The driver waits until the server has cancelled the statement, which takes seconds if the server hangs.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._ending: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, address: DatabaseAddress, *, size: int) -> Self:
        """Connect. Raises the errors of the driver."""
        return cls(await connect_pool(address, size=size))

    async def close(self) -> None:
        """Let queries end, and disconnect."""
        with suppress(*_GONE):
            async with asyncio.timeout(_PATIENCE):
                await self._pool.close()  # which ends the connections if its own time ends
        if self._ending:
            await asyncio.wait(self._ending)

    @asynccontextmanager
    async def borrowed(self, *, in_transaction: bool = False) -> AsyncIterator[Any]:
        """A connection for the block. `in_transaction`: the block begins a transaction that changes nothing."""
        connection = await self._pool.acquire()
        try:
            yield connection
            if in_transaction:
                with suppress(*_GONE):
                    await connection.execute("ROLLBACK")
        except BaseException:
            ending = asyncio.create_task(self._end(connection, in_transaction=in_transaction))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            raise
        await self._pool.release(connection)

    async def _end(self, connection: Any, *, in_transaction: bool) -> None:
        with suppress(*_GONE):
            try:
                if in_transaction:
                    await connection.execute("ROLLBACK")
            finally:
                await self._pool.release(connection)

    async def fetch(self, sql: str, *arguments: object, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - the driver's
        """The rows of a query, which may take `timeout` seconds in place of the usual time."""
        async with self.borrowed() as connection:
            return await connection.fetch(sql, *arguments, timeout=timeout)

    async def fetchrow(self, sql: str, *arguments: object) -> Any:
        """The first row of a query, or None."""
        async with self.borrowed() as connection:
            return await connection.fetchrow(sql, *arguments)

    async def fetchval(self, sql: str, *arguments: object) -> Any:
        """The first value of the first row of a query, or None."""
        async with self.borrowed() as connection:
            return await connection.fetchval(sql, *arguments)
