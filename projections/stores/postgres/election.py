"""The election of a leader among processes on one database: it holds a lock of its session and writes, the others are notified.

The lock is on the session (https://www.postgresql.org/docs/current/explicit-locking.html, 13.3.5) of the very connection that
writes: if that ends, the lock is free, and nothing can be written on it any more. If the process hangs its
lease runs out (`projections.stores.postgres.statements`), and a standby ends that session. The next leader begins with the
checkpoints that are stored then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import structlog

from projections.errors import StoreUnavailable
from projections.store import Checkpoint
from projections.stores.common import LEASE
from projections.stores.postgres import statements
from projections.stores.postgres.connection import QUERY_TIMEOUT, DatabaseAddress, connect_postgres, translated

log = structlog.get_logger(__name__)

LEADER, MIGRATION = "leader", "migration"
"""The locked operations: writing, and changing the tables themselves."""
KEY = "hashtextextended('read model ' || current_schema() || ' ' || $1, 0)"
"""The number of a lock, from the session's schema and the locked operation."""
KEY_WITHIN = "hashtextextended('read model ' || $2 || ' ' || $1, 0)"
"""As KEY, of another schema."""
_TRY = f"SELECT pg_try_advisory_lock({KEY})"
_POLL = 0.02
_LOCKED_FOR = "1s"
"""Time for which a write waits for a lock. Then the cause is known, and the projector tries again."""
_LONGEST_NAME = 60
_SILENCE = 1.0
"""Seconds without news after which a standby tries to lead."""


class PostgresElection:
    """The part of one process in it: see `projections.store.LeaderElection`."""

    def __init__(self, address: DatabaseAddress, *, write_timeout: float) -> None:
        """`write_timeout`: seconds that a statement of the connection that writes may take."""
        self.channel = ""
        self._address = address
        self._write_timeout = write_timeout
        self._taking = asyncio.Lock()
        self.connection: Any = None
        """The connection that writes; there is one after `take` gave true."""
        self._candidate: Any = None
        self._lost = asyncio.Event()
        self._lost.set()
        self._beating: asyncio.Task[None] | None = None
        self.token = 0
        """The fencing token of this process, since it last began to lead."""
        self.silent: float | None = None
        """Seconds for which the process that leads was not heard of, as last looked; None if this one leads, or unknown."""

    async def take(self) -> bool:
        """Become the one that writes, or stay so. False where another process is. Raises StoreUnavailable."""
        async with self._taking:
            if self.connection is not None and not self.connection.is_closed():
                return True
            self.connection = None
            with translated(self._address):
                candidate = await self._connected()
                if not await self._locks(candidate):
                    return False
                self.token = await statements.taken(candidate)
            self.silent = None
            self._candidate = None
            self.connection = candidate
            self._lost.clear()
            candidate.add_termination_listener(lambda *_: self._lost.set())
            self._beating = asyncio.create_task(self._beat(candidate, self.token), name="lease of the projector")
            log.info("brings the read model up to date from now on", database=str(self._address), token=self.token)
            return True

    async def _locks(self, candidate: Any) -> bool:
        """Take the lock. The session of a leader that hangs is ended first."""
        if await candidate.fetchval(_TRY, LEADER, timeout=QUERY_TIMEOUT):
            return True
        leader = await statements.leader(candidate, KEY, LEADER)
        self.silent = None if leader is None else leader.silent
        if leader is None or not leader.hangs:
            return False
        log.warning("the leader hangs, its session is ended", leader=leader.holder, silent=round(leader.silent, 1))
        try:
            await statements.end(candidate)
        except asyncpg.InsufficientPrivilegeError as error:
            log.warning("the leader hangs, and this user may not end its session", leader=leader.holder, reason=str(error))
            return False
        loop = asyncio.get_running_loop()
        end = loop.time() + QUERY_TIMEOUT
        while not await candidate.fetchval(_TRY, LEADER, timeout=QUERY_TIMEOUT):
            if loop.time() > end:  # another process was sooner
                return False
            await asyncio.sleep(_POLL)
        return True

    async def _beat(self, writer: Any, token: int) -> None:
        """Renew the lease while the session that writes is there: on another one, since that may be busy for long."""
        connection: Any = None
        try:
            while not writer.is_closed():
                try:
                    if connection is None or connection.is_closed():
                        connection = await connect_postgres(
                            self._address, command_timeout=QUERY_TIMEOUT, synchronous_commit="off"
                        )
                    if not await statements.renew(connection, token):
                        log.warning("another process leads by now", database=str(self._address), token=token)
                        writer.terminate()
                except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                    log.info("the lease could not be renewed", database=str(self._address), reason=str(error))
                await asyncio.sleep(statements.RENEWED_EVERY)
        finally:
            if connection is not None:
                connection.terminate()

    async def _connected(self) -> Any:
        """The connection that would write, kept from one look to the next."""
        if self._candidate is None or self._candidate.is_closed():
            self._candidate = await connect_postgres(self._address, command_timeout=self._write_timeout, lock_timeout=_LOCKED_FOR)
        await self._name(self._candidate)
        return self._candidate

    async def lost(self) -> None:
        """Return when it is no longer this process's turn: the connection that writes has ended."""
        await self._lost.wait()

    async def release(self) -> None:
        """Let another process have its turn."""
        async with self._taking:
            connections = (self.connection, self._candidate)
            self.connection = self._candidate = None
            beating, self._beating = self._beating, None
            if beating is not None:
                beating.cancel()
                await asyncio.wait({beating})
            for connection in connections:
                if connection is not None:
                    with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                        await connection.close(timeout=QUERY_TIMEOUT)

    async def lock(self, connection: Any, what: str) -> None:
        """Wait for a lock of this database, held until the end of the connection's transaction."""
        await self._name(connection)
        await connection.execute(f"SELECT pg_advisory_xact_lock({KEY})", what)

    @asynccontextmanager
    async def news(self) -> AsyncIterator[AsyncIterator[Mapping[str, Checkpoint] | None]]:
        """The checkpoints now, and again whenever a process has moved them; None about once a second if none has."""
        heard = asyncio.Event()
        with translated(self._address):
            connection = await connect_postgres(self._address, command_timeout=QUERY_TIMEOUT)
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
                checkpoints = await statements.read_checkpoints(connection)
            if self.connection is None:
                self.silent = 0.0
            yield checkpoints

    async def _name(self, connection: Any) -> None:
        """Schemas of one database are separate databases to us: each has its lock and its channel."""
        if not self.channel:
            found = await connection.fetchval("SELECT current_schema()", timeout=QUERY_TIMEOUT)
            if found is None:
                raise StoreUnavailable(f"{self._address}: there is no schema to make tables in: create a schema of `search_path`")
            self.channel = f"read model {found}"[:_LONGEST_NAME]


async def leader_at(url: str) -> statements.Leader | None:
    """The leader on the database at an address; None if there is none. Raises StoreUnavailable."""
    address = DatabaseAddress(url)
    with translated(address):
        connection = await connect_postgres(address, command_timeout=QUERY_TIMEOUT)
        try:
            if not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", LEASE):
                return None
            return await statements.leader(connection, KEY, LEADER)
        finally:
            await connection.close()
