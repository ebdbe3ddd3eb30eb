"""A nats-server that is there for one piece of work: it is empty at first, and its files are gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from eventlog.embedded.nats import MAX_PAYLOAD, EmbeddedServer
from eventlog.jetstream.transport.connection import Connection

_STORE = 1 << 50
"""Bytes that it may store: as many as the disk has."""


@asynccontextmanager
async def throw_away_server(*, max_payload: int = MAX_PAYLOAD, directory: Path | None = None) -> AsyncIterator[Connection]:
    """A connection to a new server for the block. `max_payload` is the most bytes of a message.

    Its files are in `directory`, by default where temporary files are. Raises ServerFailed.
    """
    with tempfile.TemporaryDirectory(prefix=".throw-away-", dir=directory) as scratch:
        async with (
            EmbeddedServer(Path(scratch), max_file_store=_STORE, max_payload=max_payload, durable=False) as server,
            Connection.open(server.url, name="throw-away") as connection,
        ):
            yield connection
