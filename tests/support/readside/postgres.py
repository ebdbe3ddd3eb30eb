"""Real Postgres servers for tests: the one that comes as a wheel, or the one that PROJECTIONS_POSTGRES names."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from projections.stores.postgres.server import BINARY_VARIABLE, PostgresServer, packaged_binaries

_numbers = count(1)


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
    """The address of an empty database, removed afterwards."""
    name = f"test_{next(_numbers)}"
    await server.create(name)
    try:
        yield server.url(name)
    finally:
        await server.drop(name)
