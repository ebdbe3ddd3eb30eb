"""Real nats-servers for tests."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.js import JetStreamContext

from eventlog.jetstream.connection import Connection
from tests.support.waiting import wait_until

_REMOVED_WITHIN = 60.0


async def _quiet(_: Exception) -> None:
    """Connection errors are part of the tests, nats-py would print a traceback for each."""


@asynccontextmanager
async def plain_client(url: str | list[str]) -> AsyncIterator[Client]:
    """A bare nats-py client that reconnects for ever. It looks at the server apart from the code under test."""
    client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.05, connect_timeout=2, error_cb=_quiet)
    try:
        yield client
    finally:
        with suppress(OSError):  # nats-py drains a socket that may be gone
            await client.close()


async def flushed(client: Client) -> None:
    """Wait until the server has what the client sent. nats-py sends a first PING ahead of frames that wait."""
    await client.flush()
    await client.flush()


def abort_transport(connection: Connection) -> None:
    """Close the transport of a connection as a reset by the server does, before nats-py has read that it is closed."""
    transport = connection.client._transport
    assert isinstance(transport, TcpTransport)
    assert transport._io_writer is not None
    transport._io_writer.transport.abort()


async def remove_streams(url: str, *data_dirs: Path) -> None:
    """Delete every stream on a server, with buckets and consumers. `data_dirs` belong to the server or its cluster.

    The server finishes the deletion on disk a moment later. If a stream of the same name is made and deleted before, the server
    fails to put the files away without a report, and the next stream of that name begins with their content (nats-server 2.15:
    `fileStore.Delete`, whose errors `stream.stop` ignores). So this waits for the end of the deletion.
    """
    async with plain_client(url) as client:
        jetstream: JetStreamContext = client.jetstream(timeout=_REMOVED_WITHIN)
        for stream in await jetstream.streams_info():
            await jetstream.delete_stream(stream.config.name or "")
    with suppress(AssertionError):
        await wait_until(lambda: not _left(data_dirs), timeout=_REMOVED_WITHIN)
    for left in _left(data_dirs):
        shutil.rmtree(left, ignore_errors=True)


def _left(data_dirs: Iterable[Path]) -> list[Path]:
    """The directories of streams that are there."""
    return [path for data_dir in data_dirs for path in (data_dir / "jetstream").glob("*/streams/*")]
