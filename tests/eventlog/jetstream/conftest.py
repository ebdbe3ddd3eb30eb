"""Connections of readers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.connection import Connection


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="follow") as connection:
        yield connection


@pytest_asyncio.fixture
async def own(nats_server: EmbeddedServer) -> AsyncIterator[Connection]:
    """A connection to a server that may be killed."""
    async with Connection.open(nats_server.url, name="follow", check_every=0.5, check_timeout=0.5) as connection:
        yield connection
