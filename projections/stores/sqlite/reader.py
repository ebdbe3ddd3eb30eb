"""Reading a database file: queries, read transactions on connections that requests take in turns, and whole tables."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from projections.errors import StoreDamaged, StoreUnavailable
from projections.model import StoredColumn, Table
from projections.store import Argument, Checkpoint, Mark, Parked, Row, SchemaVersion, Snapshot
from projections.stores.common import any_row, quoted
from projections.stores.sqlite import files, statements
from projections.stores.sqlite.connection import bound, connect_reader, translated

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
        self.checkpoints = statements.read_checkpoints(self._connection)

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


T = TypeVar("T")

_TIMEOUT = 0.25
"""Seconds that a query may wait for a lock, in the event loop (there is next to none in WAL mode)."""


class SQLiteReader:
    """Looks at a database file, also while another process writes to it: `projections.store.Reader`.

    Queries run in the event loop's own thread, on one connection: they belong on an index. Queries that read much go through
    `fetch_in_thread`, queries of one moment through `transaction`, whole tables through `snapshot`, on private connections.
    """

    dialect = "sqlite"

    def __init__(self, path: Path, *, is_copy: bool = False) -> None:
        """`is_copy`: the file at `path` itself is meant, as `SQLiteCopies` does; else the one that is live there."""
        self.path = path
        self._is_copy = is_copy
        self.damage: StoreDamaged | None = None
        """The damage that a query has found since the file was opened."""
        self.withheld: str | None = None
        """Why queries are refused now, see `projections.store.Store`."""
        self.file = path
        """The file that is live, since it was opened; `path` is what the database is known by."""
        self._opened_as: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        self._readers = self._connections(path)
        self._opened_times = 0

    @property
    def identity(self) -> str:
        """Names the database: the machine and the real path."""
        return f"{socket.gethostname()}:{self.path.absolute().resolve()}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the file. Raises StoreUnavailable if there is none, StoreDamaged."""
        with translated(self.path):
            self.file = self._live_file()
            self._opened_as = files.identity(self.file)  # before it is opened: a later file of this name is seen as another one
            if self._opened_as is None:
                raise StoreUnavailable(f"{self.file} does not exist: it is made by the service that fills it")
            self._connection = self._connect(self.file)
            self._opened_times += 1
            self.damage = None
            self._readers = self._connections(self.file)

    def _live_file(self) -> Path:
        return self.path if self._is_copy else files.file_of(self.path, files.read(self.path).live)

    def _connect(self, file: Path) -> sqlite3.Connection:
        connection = connect_reader(file, busy_timeout=_TIMEOUT)
        try:
            statements.check_format(connection, file)
            statements.read_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _read_from(self, connection: sqlite3.Connection, file: Path) -> None:
        """Read on another connection from now on: of a query everything comes from one of them."""
        (before, self._connection), (former, self._readers) = (
            (self._connection, connection),
            (self._readers, self._connections(file)),
        )
        self._opened_times += 1
        self.file, self._opened_as = file, files.identity(file)
        if before is not None:
            before.close()
        await former.close()

    async def close(self) -> None:
        """Close the file."""
        await self._readers.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def is_replaced(self) -> bool:
        """See `projections.store.Reader.is_replaced`: after a switch, or if the file was set aside. Raises StoreUnavailable."""
        with translated(self.path):
            return files.identity(self._live_file()) != self._opened_as

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""
        with translated(self.path):
            return statements.read_checkpoints(self._opened())

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence."""
        with translated(self.path):
            return statements.read_parked(self._opened())

    async def marks(self, stream: str, *, above: int = 0) -> Sequence[Mark]:
        """The marks of a stream above a sequence, in order."""
        with translated(self.path):
            return statements.read_marks(self._opened(), stream, above)

    async def scrubs(self, stream: str) -> str | None:
        """The last state of the passes over a log, or None."""
        with translated(self.path):
            return statements.read_scrubs(self._opened()).get(stream)

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query."""
        with self._watched():
            return rows_of(self._asked(), sql, arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""
        connection = self._asked()
        try:
            cursor = connection.execute(sql, bound(arguments))
            row = cursor.fetchone()
            names = cursor.description
            cursor.close()
        except Exception:
            with self._watched():  # to translate errors; entered only now, since most queries are for a row by its key
                raise
        return None if row is None else {column[0]: value for column, value in zip(names, row, strict=True)}

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """As `fetch`, in a thread and on a private connection. It is interrupted if its caller is cancelled."""
        async with self.transaction() as reading:
            return await reading.fetch_in_thread(sql, *arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SQLiteReadTransaction]:
        """See `projections.store.Reader.transaction`."""
        self._asked()
        async with self._readers.transaction() as reading:
            yield reading

    def _connections(self, path: Path) -> ReadConnections:
        return ReadConnections(path, self._watched, busy_timeout=_TIMEOUT)

    def state(self) -> object:
        """See `projections.store.Reader.state`: SQLite counts the transactions that others wrote, for each connection."""
        if self._connection is None or self.withheld is not None:
            return None
        try:
            return self._opened_times, self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return None  # the next query raises it

    async def schema(self) -> SchemaVersion:
        """The last migration applied."""
        with translated(self.path):
            return statements.read_version(self._opened())

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none if there is no such table."""
        with translated(self.path):
            return statements.read_columns(self._opened(), table)

    async def problems(self, *, thorough: bool = False) -> Sequence[str]:
        """The damage of the file, the first ten; it reads all of it, without blocking the event loop.

        By SQLite's quick_check, or `thorough` by its integrity_check, which takes ten times longer and looks into the indexes.
        """
        check = "integrity_check" if thorough else "quick_check"
        self._opened()
        with self._watched():
            found = await asyncio.to_thread(self._check, f"PRAGMA {check}(10)")
        return [] if found == ["ok"] else found

    def _check(self, pragma: str) -> list[str]:
        # A new connection: pages in the cache of an older one would not be read from the disk.
        with closing(connect_reader(self.file, busy_timeout=5)) as connection:
            return [str(text) for (text,) in connection.execute(pragma)]

    async def check_readable(self, tables: Sequence[str]) -> None:
        """See `projections.store.Reader.check_readable`."""
        if tables:
            await self.fetch_one(any_row(tables))

    async def sizes(self, tables: Sequence[str]) -> Mapping[str, int]:
        """About how many rows these tables have: the highest row number ever used."""
        with translated(self.path):
            found = {table: f"SELECT max(rowid) FROM {quoted(table)}" for table in tables}  # noqa: S608 - quoted
            return {table: self._opened().execute(sql).fetchone()[0] or 0 for table, sql in found.items()}

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Everything as it is now."""
        with ThreadPoolExecutor(1, thread_name_prefix="snapshot") as thread:
            snapshot = _Snapshot(self.file, thread)
            try:
                await snapshot.begin()
                yield snapshot
            finally:
                await snapshot.end()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            with translated(self.path, asked=True):
                yield
        except StoreDamaged as error:
            self.damage = error
            raise

    def _asked(self) -> sqlite3.Connection:
        if self.withheld is not None:
            raise StoreUnavailable(self.withheld)
        return self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailable(f"{self.path} is not open")
        return self._connection


class _Snapshot:
    """A read transaction on a private connection, in a private thread."""

    def __init__(self, path: Path, thread: ThreadPoolExecutor) -> None:
        self._path = path
        self._thread = thread
        self._connection: sqlite3.Connection | None = None

    async def begin(self) -> None:
        def begin() -> None:
            connection = self._connection = connect_reader(self._path, busy_timeout=5)
            connection.execute("BEGIN")
            statements.read_checkpoints(connection)  # the transaction begins with its first read

        await self._run(begin)

    async def end(self) -> None:
        if self._connection is not None:
            await self._run(self._connection.close)

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        return await self._run(lambda: statements.read_checkpoints(self._begun()))

    async def scan(self, table: Table, *, batch: int = 1000) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        columns = ", ".join(map(quoted, table.names))
        sql = f"SELECT {columns} FROM {quoted(table.name)} ORDER BY {statements.order_of_keys(table)}"  # noqa: S608 - quoted
        cursor = await self._run(lambda: self._begun().execute(sql))
        booleans = [index for index, column in enumerate(table.columns) if column.type == "boolean"]
        while rows := await self._run(lambda: cursor.fetchmany(batch)):
            yield [_with_booleans(row, booleans) for row in rows] if booleans else rows

    def _begun(self) -> sqlite3.Connection:
        assert self._connection is not None, "a snapshot is used inside its `async with`"
        return self._connection

    async def _run(self, function: Callable[[], T]) -> T:
        with translated(self._path):
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)


def _with_booleans(row: tuple[Any, ...], booleans: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for index in booleans:
        if values[index] is not None:
            values[index] = bool(values[index])
    return tuple(values)
