"""Connections to a Postgres database and a pool of them: settings, conversion of values, the meaning of errors for a caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
import structlog

from projections.errors import ArgumentRefused, ProjectionError, RowRefused, StoreDamaged, StoreUnavailable
from projections.model import timestamp_text
from projections.stores.common import quoted

_log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 5.0
"""Seconds to connect."""
QUERY_TIMEOUT = 5.0
"""Seconds that a query may take for which a request waits."""

_SETTINGS = {
    "application_name": "projections",
    "timezone": "UTC",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "client_connection_check_interval": "1000",
}
"""A process or host that is gone is noticed within five seconds, and the locks of its sessions are released."""

_LOST = "the connection to the server was lost: look at the server and the network"
_AWAY = {
    "55P03": "a table is locked by another session: look at pg_locks, and end that session",
    "53100": "the disk of the server is full: make room",
    "53200": "the memory of the server is used up",
    "53300": "the server has no free connection: raise max_connections, or end sessions",
    "57014": "the server did not answer in time: look at its load and its locks",
    "57P01": _LOST,
    "57P02": _LOST,
    "57P03": "the server starts, stops or recovers: wait, and look at its log",
    "42501": "the user of the address may not do this: grant it the rights on the schema",
    "0A000": "the tables were changed by a migration: try again",
    "08": _LOST,
    "25": "the server takes no write now: look whether it is a standby or set to read only",
    "28": "the server refuses the user or the password: look at the address of the database",
    "3D": "the server has no such database: look at the address, or create it",
    "3F": "the database has no such schema: look at the address, or create it",
    "40": "another session changed the same rows: try again",
    "53": "the server is short of a resource: look at its log",
    "55": "an object is in use by another session: look at pg_locks",
    "57": "the statement was stopped on the server: look at its log",
    "58": "the server has an error of its system: look at its disk and its log",
}
"""The cause and the remedy for each code or class of errors (https://www.postgresql.org/docs/current/errcodes-appendix.html) that
ends when something outside of this program changes. The first that fits counts. 0A000: a statement was prepared for tables that a
migration has changed; the next try prepares it."""
_UNREACHED = "the server cannot be reached: look whether it runs, and at its address"
_SILENT = "the server did not answer in time: look at the server, its load and its locks"
_DAMAGED = ("XX001", "XX002")
_REFUSED = ("22", "23", "54")

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DatabaseAddress:
    """The address of a database: `url` as given, `dsn` for the driver, `shown` without the password."""

    def __init__(self, url: str) -> None:
        """`url`: `postgresql://user:password@host:port/database?setting=value` or `postgres:...`. Raises StoreUnavailable."""
        self.url = url
        scheme, _, rest = url.partition(":")
        self.dsn = f"postgresql:{rest if rest.startswith('//') else f'///{rest}'}"
        try:
            parts = urlsplit(self.dsn)
            _ = parts.port
        except ValueError as error:
            raise StoreUnavailable(f"{scheme}:… is no address of a database: {error}") from error
        hidden = parts
        if parts.password is not None:
            user, _, host = parts.netloc.rpartition("@")
            hidden = parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}")
        if "password" in parse_qs(parts.query):
            query = "&".join("password=***" if part.startswith("password=") else part for part in parts.query.split("&"))
            hidden = hidden._replace(query=query)
        self.shown = hidden.geturl()
        self.database = unquote(parts.path.lstrip("/"))
        self.settings: Mapping[str, str] = {}
        """Settings of its sessions, in addition to the settings in the address."""

    def __str__(self) -> str:
        return self.shown

    def within(self, schema: str) -> DatabaseAddress:
        """The same database, its tables in another schema."""
        found = copy(self)
        found.settings = {"search_path": quoted(schema)}
        found.shown = f"{self.shown} (schema {schema})"
        return found


@contextmanager
def translated(address: DatabaseAddress, *, asked: bool = False) -> Iterator[None]:
    """Raise the error for a database error: StoreUnavailable, StoreDamaged, RowRefused, else ProjectionError (our own fault).

    `asked`: a value that cannot be sent came from the caller.
    """
    unbindable = ArgumentRefused if asked else RowRefused
    try:
        yield
    except asyncpg.PostgresError as error:
        code = error.sqlstate or ""
        said = f"{address}: {error}"
        if code.startswith(_DAMAGED):
            _log.debug("the database is damaged", database=str(address), reason=str(error))
            raise StoreDamaged(
                f"{address}: a page or an index of it is damaged: stop the services, empty the database and start again; the "
                "read model is rebuilt from the log"
            ) from error
        if code.startswith(_REFUSED):
            raise unbindable(said) from error
        if (reason := _reason_away(code)) is not None:
            raise _unavailable(address, reason, error) from error
        _log.error("a statement failed", database=str(address), reason=str(error))
        raise ProjectionError(f"{address}: a statement of this program failed, see its log") from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OverflowError, UnicodeEncodeError) as error:
        if isinstance(error, asyncpg.InternalClientError) or (
            isinstance(error, asyncpg.InterfaceError) and not isinstance(error, ValueError)
        ):
            raise _unavailable(address, _LOST, error) from error
        raise unbindable(f"{address}: a value that Postgres cannot hold: {error}") from error
    except (OSError, TimeoutError) as error:
        raise _unavailable(address, _SILENT if isinstance(error, TimeoutError) else _UNREACHED, error) from error


def _reason_away(code: str) -> str | None:
    return next((reason for begin, reason in _AWAY.items() if code.startswith(begin)), None)


def _unavailable(address: DatabaseAddress, reason: str, error: Exception) -> StoreUnavailable:
    """The error for a user. The text of the driver is for the log."""
    _log.debug("the database refuses", database=str(address), reason=str(error) or type(error).__name__)
    return StoreUnavailable(f"{address}: {reason}")


async def connect_postgres(address: DatabaseAddress, *, command_timeout: float | None = None, **settings: str) -> Any:
    """A connection that takes and gives values as the driver does, for writers."""
    return await asyncpg.connect(
        address.dsn,
        timeout=CONNECT_TIMEOUT,
        command_timeout=command_timeout,
        server_settings={**_SETTINGS, **address.settings, **settings},
    )


async def connect_pool(address: DatabaseAddress, *, size: int) -> Any:
    """Connections for queries: times come back as text (see `projections.model.Column`), and may be asked for as text."""
    return await asyncpg.create_pool(
        address.dsn,
        min_size=1,
        max_size=size,
        timeout=CONNECT_TIMEOUT,
        command_timeout=QUERY_TIMEOUT,
        server_settings={**_SETTINGS, **address.settings},
        init=times_as_text,
    )


async def times_as_text(connection: Any) -> None:
    """Let a connection give times as text."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", format="tuple", encoder=_encoded_time, decoder=_decoded_time
    )


def _encoded_time(value: datetime | str) -> tuple[int]:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return ((value - _EPOCH) // _MICROSECOND,)


def _decoded_time(value: tuple[int]) -> str:
    return timestamp_text(_EPOCH + timedelta(microseconds=value[0]))


def without_nul(value: Any) -> Any:
    """A text as Postgres can hold it: the character NUL, which it cannot, as U+FFFD."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


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
