"""Reading a database file."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from projections.errors import StoreDamaged, StoreUnavailable
from projections.model import StoredColumn, Table
from projections.store import Argument, Checkpoint, Mark, Parked, Row, SchemaVersion, Snapshot
from projections.stores.names import any_row, quoted
from projections.stores.sqlite import files, schema, writing
from projections.stores.sqlite.connection import bound, connect_reader, translated
from projections.stores.sqlite.transactions import ReadConnections, SQLiteReadTransaction, rows_of

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
        self._reads = self._connections(path)
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
            self._reads = self._connections(self.file)

    def _live_file(self) -> Path:
        return self.path if self._is_copy else files.file_of(self.path, files.read(self.path).live)

    def _connect(self, file: Path) -> sqlite3.Connection:
        connection = connect_reader(file, busy_timeout=_TIMEOUT)
        try:
            schema.check_format(connection, file)
            schema.read_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _read_from(self, connection: sqlite3.Connection, file: Path) -> None:
        """Read on another connection from now on: of a query everything comes from one of them."""
        (before, self._connection), (reads, self._reads) = (self._connection, connection), (self._reads, self._connections(file))
        self._opened_times += 1
        self.file, self._opened_as = file, files.identity(file)
        if before is not None:
            before.close()
        await reads.close()

    async def close(self) -> None:
        """Close the file."""
        await self._reads.close()
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
            return writing.read_checkpoints(self._opened())

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence."""
        with translated(self.path):
            return writing.read_parked(self._opened())

    async def marks(self, stream: str, *, above: int = 0) -> Sequence[Mark]:
        """The marks of a stream above a sequence, in order."""
        with translated(self.path):
            return writing.read_marks(self._opened(), stream, above)

    async def scrubs(self, stream: str) -> str | None:
        """The last state of the passes over a log, or None."""
        with translated(self.path):
            return writing.read_scrubs(self._opened()).get(stream)

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
        async with self._reads.transaction() as reading:
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
            return schema.read_version(self._opened())

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none if there is no such table."""
        with translated(self.path):
            return schema.read_columns(self._opened(), table)

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
            writing.read_checkpoints(connection)  # the transaction begins with its first read

        await self._run(begin)

    async def end(self) -> None:
        if self._connection is not None:
            await self._run(self._connection.close)

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        return await self._run(lambda: writing.read_checkpoints(self._begun()))

    async def scan(self, table: Table, *, batch: int = 1000) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        columns = ", ".join(map(quoted, table.names))
        sql = f"SELECT {columns} FROM {quoted(table.name)} ORDER BY {schema.order_of_keys(table)}"  # noqa: S608 - quoted
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
