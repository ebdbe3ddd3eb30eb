"""Reading a database file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Self, TypeVar

from projections.errors import StoreUnavailable
from projections.model import Table
from projections.sqlite import schema, writing
from projections.sqlite.connection import bound, connect_reader, translated
from projections.store import KEYS, Argument, Checkpoint, KeyRecord, Row, SchemaVersion, Snapshot, StoredColumn

T = TypeVar("T")


class SQLiteReader:
    """Looks at a database file, also while another process writes to it: `projections.store.Reader`.

    Queries run in the event loop's own thread, on one connection: they belong on an index. Whole tables are read through
    `snapshot`, in another thread.
    """

    dialect = "sqlite"

    def __init__(self, path: Path, *, read_timeout: float = 0.25) -> None:
        """`read_timeout`: seconds that a query may wait for a lock, in the event loop (there is next to none in WAL mode)."""
        self.path = path
        self._read_timeout = read_timeout
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the file. Raises StoreUnavailable where there is none, StoreDamaged."""
        with translated(self.path):
            if not self.path.exists():
                raise StoreUnavailable(f"{self.path} does not exist: it is made by the service that fills it")
            connection = connect_reader(self.path, busy_timeout=self._read_timeout)
            try:
                schema.read_version(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    async def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""
        with translated(self.path):
            return writing.read_checkpoints(self._opened())

    async def find_key(self, key: str) -> KeyRecord | None:
        """Where an idempotency key took effect, as far as this read model has been brought."""
        row = await self.fetch_one(f"SELECT * FROM {KEYS.name} WHERE key = $1", key)  # noqa: S608 - a constant
        return KeyRecord(**row) if row else None

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query."""
        with translated(self.path):
            cursor = self._opened().execute(sql, bound(arguments))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""
        with translated(self.path), closing(self._opened().execute(sql, bound(arguments))) as cursor:
            row = cursor.fetchone()
            return None if row is None else {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    async def schema(self) -> SchemaVersion:
        """The last migration applied."""
        with translated(self.path):
            return schema.read_version(self._opened())

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none where there is no such table."""
        with translated(self.path):
            return schema.read_columns(self._opened(), table)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Everything as it is now."""
        return _snapshot(self.path)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailable(f"{self.path} is not open")
        return self._connection


@asynccontextmanager
async def _snapshot(path: Path) -> AsyncIterator[_Snapshot]:
    with ThreadPoolExecutor(1, thread_name_prefix="snapshot") as thread:
        snapshot = _Snapshot(path, thread)
        try:
            await snapshot.begin()
            yield snapshot
        finally:
            await snapshot.end()


class _Snapshot:
    """A read transaction on a connection and in a thread of its own."""

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
        columns = ", ".join(map(schema.quoted, table.names))
        sql = f"SELECT {columns} FROM {schema.quoted(table.name)} ORDER BY {schema.order_of_keys(table)}"  # noqa: S608 - quoted
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
