"""Fixtures of the tests of the broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from eventlog.jetstream.connection import Connection


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="queue") as connection:
        yield connection
