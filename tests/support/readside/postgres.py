"""Real Postgres servers for tests: the one that comes as a wheel, or the one that PROJECTIONS_POSTGRES names."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg
import pytest

from projections.stores.postgres.server import BINARY_VARIABLE, PostgresServer, packaged_binaries

_spare = WeakKeyDictionary[PostgresServer, list[str]]()
"""Empty databases that no test uses now. Creating a database takes fifty times the processor time of emptying one."""
_created = WeakKeyDictionary[PostgresServer, int]()
_OTHER_SESSIONS = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
_PUBLIC = "CREATE SCHEMA public AUTHORIZATION pg_database_owner; GRANT USAGE ON SCHEMA public TO PUBLIC"


def either_database(of_postgres: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Return a mark that runs a test on databases of either kind. On Postgres the test has the mark `of_postgres` too."""
    on_postgres = pytest.param("postgres", marks=[pytest.mark.real, of_postgres])
    return pytest.mark.parametrize("database_url", ["sqlite", on_postgres], indirect=True)


def binaries() -> Path | None:
    """The programs of the server; None: the directory in PROJECTIONS_POSTGRES."""
    return None if BINARY_VARIABLE in os.environ else packaged_binaries()


@asynccontextmanager
async def temporary_server() -> AsyncIterator[PostgresServer]:
    """Run a server on a private data directory, which is removed afterwards. It does not sync, since the machine stays up."""
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))  # not below a test's own: root's stand-in could not enter it
    try:
        async with PostgresServer(directory, durable=False, binaries=binaries()) as server:
            yield server
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def fresh_database(server: PostgresServer) -> AsyncIterator[str]:
    """The address of an empty database. It is emptied afterwards, for a later test."""
    spare = _spare.setdefault(server, [])
    if spare:
        name = spare.pop()
    else:
        _created[server] = _created.get(server, 0) + 1
        name = f"test_{_created[server]}"
        await server.create(name)
    try:
        yield server.url(name)
    finally:
        await _empty(server.url(name))
        spare.append(name)


async def _empty(url: str) -> None:
    """End all other sessions of a database, and drop all that its owners have made."""
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(f"SELECT pg_terminate_backend(pid, 60000) FROM {_OTHER_SESSIONS}")
        for row in await connection.fetch(_SCHEMAS):
            await connection.execute(f'DROP SCHEMA "{row["nspname"]}" CASCADE')
        await connection.execute(_PUBLIC)
    finally:
        await connection.close()
