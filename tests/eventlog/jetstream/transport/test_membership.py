"""Embedded servers that are a cluster: streams wait for the servers that they need, and outlive one."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import Declarations, parse
from eventlog.errors import Unavailable
from eventlog.jetstream.connection import Connection
from tests.support.cluster.servers import members

pytestmark = [pytest.mark.real, pytest.mark.long]


def declared(replicas: int, name: str = "S") -> Declarations:
    return parse({"streams": {name: {"subjects": [name.lower()], "max_bytes": "1MiB"}}}, replicas=replicas)


async def test_a_stream_outlives_a_server_and_is_not_put_on_fewer_than_it_asks_for(tmp_path: Path) -> None:
    """While a leader is elected, and while servers are missing, declarations wait for their cluster."""
    servers = members(tmp_path)
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        connection = await stack.enter_async_context(Connection.open([server.url for server in servers], name="test"))
        assert await streams.apply_declarations(connection, declared(3), patience=60) == []
        async with asyncio.timeout(60):
            with pytest.raises(Unavailable, match="has not the servers that T asks for"):
                await streams.apply_declarations(connection, declared(5, name="T"), patience=0.5)
        await servers[0].kill()
        assert await streams.apply_declarations(connection, declared(3), patience=60) == []
        await servers[0].start()
