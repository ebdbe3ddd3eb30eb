"""The end of a connection: it leaves no task and no socket, whatever the server does."""

from __future__ import annotations

import asyncio
import os
import signal

import psutil
import pytest

from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import Unavailable
from eventlog.jetstream.connection import Connection
from tests.support.log.proxy import Proxy
from tests.support.programs.processes import stand_still
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def test_a_connection_leaves_no_task_behind(nats_url: str) -> None:
    """After the block there is nothing left of it, also when pings were never answered."""
    before = asyncio.all_tasks()
    async with Proxy.before(nats_url) as proxy:
        async with Connection.open(proxy.url, name="test", check_every=0.25, check_timeout=0.5) as connection:
            proxy.flowing.clear()
            with pytest.raises(Unavailable):
                await connection.ping(0.05)
        proxy.flowing.set()
    await wait_until(lambda: asyncio.all_tasks() <= before, timeout=30)


async def test_a_connection_to_a_server_that_hangs_is_cut_off(
    nats_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that the server does not take keep no socket open."""
    monkeypatch.setattr("eventlog.jetstream.connection._CLOSE_TIMEOUT", 0.5)
    async with Connection.open(nats_server.url, name="test") as connection:
        await stand_still(nats_server.pid)
        sending = [asyncio.create_task(connection.client.publish("x", bytes(900_000))) for _ in range(30)]
        await asyncio.sleep(0.1)
    await asyncio.wait(sending)
    port = int(nats_server.url.rpartition(":")[2])
    left = [one for one in psutil.Process().net_connections("tcp") if getattr(one.raddr, "port", None) == port]
    os.kill(nats_server.pid, signal.SIGCONT)
    assert not left
