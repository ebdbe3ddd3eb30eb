"""How several processes share one database: who holds a lock of its session writes, the others listen to what was written.

The lock is on the session (https://www.postgresql.org/docs/current/explicit-locking.html, 13.3.5) of the very connection that
writes: where that ends, for whatever reason, the lock is free, and nothing can be written on it any more. Whoever leads next
begins with the checkpoints that are stored then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import asyncpg
import structlog

from projections.errors import StoreUnavailable
from projections.store import Checkpoint
from projections.stores.postgres import writing
from projections.stores.postgres.connection import QUERY_TIMEOUT, DatabaseAddress, connect, translated

log = structlog.get_logger(__name__)

LEADER, MIGRATION = "leader", "migration"
"""What is locked: writing, and changing the tables themselves."""
KEY = "hashtextextended('read model ' || current_schema() || ' ' || $1, 0)"
"""The number of a lock: of the session's schema, and of what it is for."""
KEY_WITHIN = "hashtextextended('read model ' || $2 || ' ' || $1, 0)"
"""As KEY, of another schema."""
_LONGEST_NAME = 60
_SILENCE = 1.0
"""Seconds after which who listens looks whether it may lead now."""


class PostgresTurns:
    """The turns of one process: `projections.store.Turns`."""

    def __init__(self, address: DatabaseAddress, *, write_timeout: float) -> None:
        """`write_timeout`: seconds that a statement of the connection that writes may take."""
        self.channel = ""
        self._address = address
        self._write_timeout = write_timeout
        self._taking = asyncio.Lock()
        self._connection: Any = None
        self._candidate: Any = None
        self._lost = asyncio.Event()
        self._lost.set()

    @property
    def connection(self) -> Any:
        """The connection that writes; there is one after `take` gave true."""
        return self._connection

    async def take(self) -> bool:
        """Become the one that writes, or stay so. False where another process is. Raises StoreUnavailable."""
        async with self._taking:
            if self._connection is not None and not self._connection.is_closed():
                return True
            self._connection = None
            with translated(self._address):
                candidate = await self._connected()
                if not await candidate.fetchval(f"SELECT pg_try_advisory_lock({KEY})", LEADER, timeout=QUERY_TIMEOUT):
                    return False
            self._candidate = None
            self._connection = candidate
            self._lost.clear()
            candidate.add_termination_listener(lambda *_: self._lost.set())
            log.info("brings the read model up to date from now on", database=str(self._address))
            return True

    async def _connected(self) -> Any:
        """The connection that would write, kept from one look to the next."""
        if self._candidate is None or self._candidate.is_closed():
            self._candidate = await connect(self._address, command_timeout=self._write_timeout)
        await self._name(self._candidate)
        return self._candidate

    async def lost(self) -> None:
        """Return when it is no longer this process's turn: the connection that writes has ended."""
        await self._lost.wait()

    async def release(self) -> None:
        """Let another process have its turn."""
        async with self._taking:
            connections = (self._connection, self._candidate)
            self._connection = self._candidate = None
            for connection in connections:
                if connection is not None:
                    with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                        await connection.close(timeout=QUERY_TIMEOUT)

    async def lock(self, connection: Any, what: str) -> None:
        """Wait for a lock of this database, held until the end of the connection's transaction."""
        await self._name(connection)
        await connection.execute(f"SELECT pg_advisory_xact_lock({KEY})", what)

    def news(self) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Checkpoint] | None]]:
        """The checkpoints now, and again whenever a process has moved them; None about once a second where none has."""
        return self._news()

    @asynccontextmanager
    async def _news(self) -> AsyncIterator[AsyncIterator[Mapping[str, Checkpoint] | None]]:
        heard = asyncio.Event()
        with translated(self._address):
            connection = await connect(self._address, command_timeout=QUERY_TIMEOUT)
        try:
            with translated(self._address):
                await self._name(connection)
                connection.add_termination_listener(lambda *_: heard.set())
                await connection.add_listener(self.channel, lambda *_: heard.set())
            yield self._heard(connection, heard)
        finally:
            connection.terminate()

    async def _heard(self, connection: Any, heard: asyncio.Event) -> AsyncIterator[Mapping[str, Checkpoint] | None]:
        heard.set()
        while True:
            try:
                async with asyncio.timeout(_SILENCE):
                    await heard.wait()
            except TimeoutError:
                yield None
                continue
            heard.clear()
            if connection.is_closed():
                raise StoreUnavailable(f"{self._address}: the connection was closed")
            with translated(self._address):
                checkpoints = await writing.read_checkpoints(connection)
            yield checkpoints

    async def _name(self, connection: Any) -> None:
        """Schemas of one database are databases of their own to us: each has its lock and its channel."""
        if not self.channel:
            found = await connection.fetchval("SELECT current_schema()", timeout=QUERY_TIMEOUT)
            if found is None:
                raise StoreUnavailable(f"{self._address}: there is no schema to make tables in: make that of `search_path`")
            self.channel = f"read model {found}"[:_LONGEST_NAME]
