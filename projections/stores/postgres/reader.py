"""Reading a Postgres database: queries, read transactions, and whole tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Self

import asyncpg

from projections.errors import StoreUnavailable
from projections.model import StoredColumn, Table
from projections.store import Argument, Checkpoint, Mark, Parked, ReadTransaction, Row, SchemaVersion, Snapshot
from projections.stores.common import CHECKPOINTS, any_row, quoted
from projections.stores.postgres import statements
from projections.stores.postgres.connection import (
    ConnectionPool,
    DatabaseAddress,
    connect_postgres,
    times_as_text,
    translated,
    without_nul,
)

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
            reading = PostgresReadTransaction(address, connection, await statements.read_checkpoints(connection))
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


CONNECTIONS = 12
"""Queries that one process has under way at most; more wait for their turn."""
_LOCKED_FOR = "500ms"
"""Time for which a look at a table waits for a lock: less than the second of a check of readiness."""
_ROW_BYTES = 100
"""Bytes of a row in a table that the server has not counted yet."""
_SIZES = """
    SELECT name, CASE WHEN c.reltuples >= 0 THEN c.reltuples ELSE pg_relation_size(c.oid) / $2::float8 END AS rows
    FROM unnest($1::text[]) AS name JOIN pg_class AS c ON c.oid = to_regclass(quote_ident(name))"""


class PostgresReader:
    """Looks at a database, also while other processes write to it: `projections.store.Reader`."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        """`url`: `postgresql://user:password@host:port/database`. Raises StoreUnavailable for an address of another form."""
        self.address = DatabaseAddress(url)
        self._pool: ConnectionPool | None = None
        self.withheld: str | None = None
        """Why queries are refused now, see `projections.store.Store`."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises StoreUnavailable, also where the database is empty."""
        with translated(self.address):
            pool = self._pool = await ConnectionPool.open(self.address, size=CONNECTIONS)
            try:
                await statements.check_format(pool, self.address)
                await statements.read_version(pool)
            except asyncpg.UndefinedTableError as error:
                await self._close_pool()
                raise StoreUnavailable(f"{self.address} holds no read model: it is made by the service that fills it") from error
            except BaseException:
                await self._close_pool()
                raise

    async def close(self) -> None:
        """Disconnect."""
        await self._close_pool()

    def is_replaced(self) -> bool:
        """See `projections.store.Reader.is_replaced`: never, since statements find the live tables by name."""
        return False

    async def _close_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""
        with translated(self.address):
            return await statements.read_checkpoints(self._opened())

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence."""
        with translated(self.address):
            return await statements.read_parked(self._opened())

    async def marks(self, stream: str, *, above: int = 0) -> Sequence[Mark]:
        """The marks of a stream above a sequence, in order."""
        with translated(self.address):
            return await statements.read_marks(self._opened(), stream, above)

    async def scrubs(self, stream: str) -> str | None:
        """The last state of the passes over a log, or None."""
        with translated(self.address):
            return await statements.read_scrubs(self._opened(), stream)

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query."""
        with translated(self.address, asked=True):
            return [dict(row) for row in await self._asked().fetch(sql, *map(without_nul, arguments))]

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""
        with translated(self.address, asked=True):
            row = await self._asked().fetchrow(sql, *map(without_nul, arguments))
            return None if row is None else dict(row)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """As `fetch`, for a query that takes longer."""
        with translated(self.address, asked=True):
            return [dict(row) for row in await self._asked().fetch(sql, *map(without_nul, arguments), timeout=LONG)]

    async def schema(self) -> SchemaVersion:
        """The last migration applied."""
        with translated(self.address):
            return await statements.read_version(self._opened())

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none if there is no such table."""
        with translated(self.address):
            return await statements.read_columns(self._opened(), table)

    def state(self) -> None:
        """See `projections.store.Reader.state`: it would cost as much as a query."""

    async def check_readable(self, tables: Sequence[str]) -> None:
        """See `projections.store.Reader.check_readable`."""
        if tables:
            with translated(self.address):
                async with self._asked().borrowed(in_transaction=True) as connection:
                    await connection.execute(f"BEGIN READ ONLY; SET LOCAL lock_timeout = '{_LOCKED_FOR}'; {any_row(tables)}")

    async def sizes(self, tables: Sequence[str]) -> Mapping[str, int]:
        """About how many rows these tables have: as the server last counted them, else by the size of the table."""
        with translated(self.address):
            rows = await self._opened().fetch(_SIZES, list(tables), float(_ROW_BYTES))
            return {row["name"]: int(row["rows"]) for row in rows}

    @property
    def identity(self) -> str:
        """Names the database, without the password."""
        return str(self.address)

    async def problems(self, *, thorough: bool = False) -> Sequence[str]:  # noqa: ARG002 - there is no more to look at
        """The known damage: pages whose checksum was wrong when they were read, if the server keeps checksums."""
        row = await self.fetch_one("SELECT checksum_failures AS bad FROM pg_stat_database WHERE datname = current_database()")
        return [f"{row['bad']} pages had a wrong checksum when they were read"] if row and row["bad"] else []

    def transaction(self) -> AbstractAsyncContextManager[ReadTransaction]:
        """See `projections.store.Reader.transaction`."""
        return transaction(self.address, self._asked())

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Everything as it is now."""
        with translated(self.address):
            connection = await connect_postgres(self.address)
        try:
            with translated(self.address):
                await times_as_text(connection)
                transaction = connection.transaction(isolation="repeatable_read", readonly=True)
                await transaction.start()
                # Copies do not replace the tables in this transaction, and its snapshot is taken only afterwards.
                await connection.execute(f"LOCK TABLE {CHECKPOINTS} IN ACCESS SHARE MODE")
                await statements.read_checkpoints(connection)
            yield _Snapshot(self.address, connection)
        finally:
            with suppress(TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await connection.close(timeout=5)

    def _asked(self) -> ConnectionPool:
        if self.withheld is not None:
            raise StoreUnavailable(self.withheld)
        return self._opened()

    def _opened(self) -> ConnectionPool:
        if self._pool is None:
            raise StoreUnavailable(f"{self.address} is not open")
        return self._pool


class _Snapshot:
    """A read transaction on a private connection."""

    def __init__(self, address: DatabaseAddress, connection: Any) -> None:
        self._address = address
        self._connection = connection

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        with translated(self._address):
            return await statements.read_checkpoints(self._connection)

    async def scan(self, table: Table, *, batch: int = 1000) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        columns = ", ".join(map(quoted, table.names))
        sql = f"SELECT {columns} FROM {quoted(table.name)} ORDER BY {statements.order_of_keys(table)}"  # noqa: S608 - quoted
        with translated(self._address):
            cursor = await self._connection.cursor(sql)
            rows = await cursor.fetch(batch)
        while rows:
            yield [tuple(row) for row in rows]
            with translated(self._address):
                rows = await cursor.fetch(batch)
