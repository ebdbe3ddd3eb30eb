"""Read transactions on a database file: connections that requests take in turns, and statements that can be interrupted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path

from projections.store import Argument, Checkpoint, Row
from projections.stores.sqlite import writing
from projections.stores.sqlite.connection import bound, connect_reader

CONNECTIONS = 64
"""Read transactions that one process has under way at most; more wait for their turn."""
THREADS = 16
"""Statements that read much at the same time. SQLite gives the interpreter's lock away while it works."""
_KEPT = 8
"""Connections that stay open while no request has them."""
_AGAIN = 0.01
"""Seconds after which a statement is interrupted again, which had not begun when it was interrupted."""

Watched = Callable[[], AbstractContextManager[None]]


class ReadConnections:
    """Connections to one file for read transactions. `watched` translates the errors of statements."""

    def __init__(self, path: Path, watched: Watched, *, busy_timeout: float) -> None:
        self._path = path
        self._watched = watched
        self._busy_timeout = busy_timeout
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[sqlite3.Connection] = []
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SQLiteReadTransaction]:
        """See `projections.store.Reader.transaction`."""
        async with self._turns:
            with self._watched():
                connection = self._idle.pop() if self._idle else connect_reader(self._path, busy_timeout=self._busy_timeout)
            reading = SQLiteReadTransaction(connection, self._watched, self._pool)
            is_sound = False
            try:
                with self._watched():
                    reading.begin()
                yield reading
                is_sound = True
            except asyncio.CancelledError:
                is_sound = True
                raise
            finally:
                await reading.end()
                self._give_back(connection, is_sound=is_sound)

    def _give_back(self, connection: sqlite3.Connection, *, is_sound: bool) -> None:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("COMMIT")
            if is_sound and not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reads")
        return self._threads

    async def close(self) -> None:
        """Close the connections that no request has; each other one is closed at the end of its transaction."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)


class SQLiteReadTransaction:
    """See `projections.store.ReadTransaction`. Statements follow one another, since they share a connection."""

    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection, watched: Watched, threads: Callable[[], ThreadPoolExecutor]) -> None:
        self.checkpoints: Mapping[str, Checkpoint] = {}
        self._connection = connection
        self._watched = watched
        self._threads = threads
        self._turn = asyncio.Lock()
        self._running: Future[Sequence[Row]] | None = None

    def begin(self) -> None:
        """Begin the transaction, which is at the moment of its first read."""
        self._connection.execute("BEGIN")
        self.checkpoints = writing.read_checkpoints(self._connection)

    async def end(self) -> None:
        """Interrupt what still runs, and return when it has ended."""
        running, self._running = self._running, None
        if running is None or running.cancel():
            return
        while not running.done():
            self._connection.interrupt()
            # A second cancellation must not leave a statement on a connection that another request gets.
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(_AGAIN)

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch`."""
        async with self._turn:
            with self._watched():
                return rows_of(self._connection, sql, arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """See `projections.store.Queryable.fetch_one`."""
        async with self._turn:
            with self._watched():
                return next(iter(rows_of(self._connection, sql, arguments)), None)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch_in_thread`. The statement is interrupted if its caller is cancelled."""
        async with self._turn:
            with self._watched():
                self._running = work = self._threads().submit(rows_of, self._connection, sql, arguments)
                try:
                    return await asyncio.wrap_future(work)
                except asyncio.CancelledError:
                    await self.end()
                    raise


def rows_of(connection: sqlite3.Connection, sql: str, arguments: tuple[Argument, ...]) -> Sequence[Row]:
    """The rows of a statement."""
    cursor = connection.execute(sql, bound(arguments))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
