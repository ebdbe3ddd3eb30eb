"""A session of the simulated database: replaces an asyncpg connection below the real `PostgresStore` and `PostgresTurns`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from projections.stores.common import PARKED
from tests.support.log.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from tests.simulator.database import Database


class Session:
    """A session. The database runs its statements also if the process is stopped before the answer comes."""

    def __init__(self, loop: VirtualTimeLoop, database: Database, process: str, pid: int) -> None:
        self.process = process
        self.pid = pid
        self.token = 0
        """The last fencing token that was taken in it."""
        self.in_transaction = False
        self.changes: list[Callable[[], object]] = []
        self.news: list[tuple[str, str]] = []
        self._loop = loop
        self._database = database
        self._inside = loop.context_of(process)
        self._closed = False
        self._waiting: set[asyncio.Future[Any]] = set()
        self._terminated: list[Callable[..., object]] = []
        self._listeners: dict[str, Callable[..., object]] = {}

    # The wire

    async def round_trip(self, run: Callable[[], Any] = lambda: None) -> Any:
        """Have the database run something; the result."""
        if self._closed:
            raise asyncpg.InterfaceError("connection is closed")
        result: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.add(result)
        chance = self._loop.random.random
        self._loop.call_later(
            0.0001 + chance() * (0.0005 + self._database.slow), self._arrive, result, run, context=self._database.outside
        )
        try:
            return await result
        finally:
            self._waiting.discard(result)

    def _arrive(self, result: asyncio.Future[Any], run: Callable[[], Any]) -> None:
        from tests.simulator.database import Blocked  # noqa: PLC0415 - each knows the other

        if self.pid not in self._database.sessions:
            return
        try:
            found = run()
        except Blocked as blocked:
            self._database.when_free(blocked.lock, lambda: self._arrive(result, run))
            return
        delay = 0.0001 + self._loop.random.random() * 0.0005
        self._loop.call_later(delay, _settle, result, found, context=self._inside)

    def kill(self) -> None:
        """The session ends, as by pg_terminate_backend or a broken connection; the process hears of it when it runs."""
        self._database.end(self)
        self._loop.call_soon(self._gone, context=self._inside)

    def _gone(self) -> None:
        if self._closed:
            return
        self._closed = True
        for result in list(self._waiting):
            if not result.done():
                result.set_exception(asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"))
        for callback in self._terminated:
            callback(self)

    def hear(self, channel: str, text: str) -> None:
        """A notification, if it listens to the channel."""
        if (callback := self._listeners.get(channel)) is not None:
            self._loop.call_later(0.0005, callback, self, self.pid, channel, text, context=self._inside)

    # The interface of asyncpg

    async def fetch(self, sql: str, *arguments: Any, timeout: float | None = None) -> Sequence[Mapping[str, Any]]:  # noqa: ASYNC109
        """The rows of a statement."""
        asked: Awaitable[Any] = self.round_trip(lambda: self._database.execute(self, sql, arguments))
        found: Sequence[Mapping[str, Any]] = await (asked if timeout is None else asyncio.wait_for(asked, timeout))
        return found

    async def fetchrow(self, sql: str, *arguments: Any, timeout: float | None = None) -> Mapping[str, Any] | None:  # noqa: ASYNC109
        """The first row."""
        rows = await self.fetch(sql, *arguments, timeout=timeout)
        return rows[0] if rows else None

    async def fetchval(self, sql: str, *arguments: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """The first value of the first row."""
        row = await self.fetchrow(sql, *arguments, timeout=timeout)
        return None if row is None else next(iter(row.values()))

    async def execute(self, sql: str, *arguments: Any, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Run a statement."""
        await self.fetch(sql, *arguments, timeout=timeout)

    async def executemany(self, sql: str, arguments: Sequence[Sequence[Any]]) -> None:
        """Run a statement several times."""

        def run() -> None:
            for one in arguments:
                self._database.execute(self, sql, one)

        await self.round_trip(run)

    async def copy_records_to_table(self, table: str, *, records: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> None:
        """Copy rows."""
        assert table == PARKED, columns
        await self.round_trip(lambda: self._database.park(self, records))

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """A transaction."""
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        await self.round_trip(lambda: setattr(self, "in_transaction", True))
        try:
            yield
        except BaseException:
            if not self._closed:
                await self.round_trip(lambda: self._end_transaction(commit=False))
            raise
        await self.round_trip(lambda: self._end_transaction(commit=True))

    def _end_transaction(self, *, commit: bool) -> None:
        self.in_transaction = False
        if commit:
            self._database.commit(self)
        else:
            self._database.rolled_back(self)

    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncpg's
        """End it."""
        self.terminate()

    def terminate(self) -> None:
        """End it at once."""
        self._database.end(self)
        self._gone()

    def add_termination_listener(self, callback: Callable[..., object]) -> None:
        """Call when it has ended."""
        self._terminated.append(callback)

    async def add_listener(self, channel: str, callback: Callable[..., object]) -> None:
        """Listen."""
        await self.round_trip()
        self._listeners[channel] = callback


class Pool:
    """Connections for queries: one, replaced if it was lost."""

    def __init__(self, connect: Callable[[], Awaitable[Session]]) -> None:
        self._connect = connect
        self._session: Session | None = None

    async def acquire(self) -> Session:
        """The connection."""
        if self._session is None or self._session.is_closed():
            self._session = await self._connect()
        return self._session

    async def release(self, session: Session) -> None:
        """Nothing: queries share the connection."""

    async def close(self) -> None:
        """Disconnect."""
        if self._session is not None:
            self._session.terminate()


def _settle(result: asyncio.Future[Any], found: Any) -> None:
    if not result.done():
        result.set_result(found)


__all__ = ["Pool", "Session"]
