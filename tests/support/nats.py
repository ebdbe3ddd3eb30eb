"""Real nats-servers for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import nats
from nats.aio.client import Client
from nats.js import JetStreamContext


async def _quiet(_: Exception) -> None:
    """Connection errors are part of the tests, nats-py would print a traceback for each."""


@asynccontextmanager
async def plain_client(url: str | list[str]) -> AsyncIterator[Client]:
    """A bare nats-py client that reconnects for ever, for looking at the server from beside the code under test."""
    client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.05, connect_timeout=2, error_cb=_quiet)
    try:
        yield client
    finally:
        with suppress(OSError):  # nats-py drains a socket that may be gone
            await client.close()


async def remove_streams(url: str) -> None:
    """Delete every stream on a server, and with them buckets and consumers."""
    async with plain_client(url) as client:
        jetstream: JetStreamContext = client.jetstream()
        for stream in await jetstream.streams_info():
            await jetstream.delete_stream(stream.config.name or "")
