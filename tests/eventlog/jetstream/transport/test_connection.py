"""The connection keeps itself up, replaces a client that is dead, and does not lie about it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
import structlog.testing

from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.client import frame
from eventlog.jetstream.connection import Connection
from tests.support.log.nats import abort_transport, flushed, plain_client
from tests.support.log.proxy import Proxy
from tests.support.pace import within
from tests.support.programs.processes import stand_still
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[Connection]:
    """A connection whose watchdog looks four times a second, and waits half a second for an answer."""
    async with Connection.open(url, name="test", check_every=0.25, check_timeout=0.5) as connection:
        yield connection


@pytest_asyncio.fixture
async def echo(nats_url: str) -> AsyncIterator[str]:
    """A subject that echoes each request."""

    async with plain_client(nats_url) as client:

        async def answer(message: object) -> None:
            await message.respond(message.data)  # type: ignore[attr-defined]

        await client.subscribe("echo", cb=answer)
        await flushed(client)
        yield "echo"


async def test_connecting_to_nothing_fails_in_time_and_says_what_to_do() -> None:
    """Unavailable within the timeout, with the address and without the password."""
    with within(8), pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 within 0\.5 s.*server running") as error:
        async with Connection.open("nats://user:secret@127.0.0.1:1", name="test", timeout=0.5):
            pass
    assert "secret" not in str(error.value)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Introduce a server, and read what a client sends up to its first ping."""
    info = {"server_id": "x", "version": "2.10.0", "proto": 1, "max_payload": 1, "headers": True}
    writer.write(b"INFO %b\r\n" % json.dumps(info).encode())
    while b"PING" not in await reader.readline():
        pass


async def test_the_time_to_connect_ends_also_at_the_moment_of_a_refusal() -> None:
    """`asyncio.wait_for` of Python 3.11, which nats-py uses, loses a cancellation that comes with a result."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        writer.write(b"-ERR 'Authorization Violation'\r\n")
        time.sleep(max(0.0, deadline + 0.1 - time.monotonic()))  # noqa: ASYNC251 - the loop finds both at once
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        address = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        deadline = time.monotonic() + 0.3
        opening = asyncio.create_task(Connection.open(address, name="test", timeout=0.3).__aenter__())
        done, _ = await asyncio.wait({opening}, timeout=15)
        opening.cancel()
        assert done, "the opening did not end"
        with pytest.raises(Unavailable, match="Authorization Violation"):
            await opening


async def test_a_refusal_is_the_reason_also_if_the_server_resets_later_connections_before_its_answer_is_read() -> None:
    seen = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        await greet(reader, writer)
        seen += 1
        if seen == 1:
            writer.write(b"-ERR 'Authorization Violation'\r\n")
            writer.close()
        else:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        address = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(Unavailable, match="Authorization Violation"):
            async with Connection.open(address, name="test", timeout=3):
                pass
    assert seen > 1


async def test_an_address_that_is_none_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot connect to NATS at"):
        async with Connection.open("not an address", name="test", timeout=0.5):
            pass


async def test_of_several_addresses_one_is_enough(nats_url: str, echo: str) -> None:
    async with Connection.open(f"nats://127.0.0.1:1, {nats_url}", name="test") as connection:
        assert (await connection.request(echo, b"x")).data == b"x"


async def test_nobody_there_is_unavailable_at_once_and_silence_is_unknown(nats_url: str) -> None:
    async with Connection.open(nats_url, name="test") as connection, plain_client(nats_url) as other:
        with pytest.raises(Unavailable, match="nothing on NATS takes nobody") as error:
            await connection.request("nobody", b"x")
        assert not isinstance(error.value, OutcomeUnknown)
        await other.subscribe("silent")
        await flushed(other)
        with pytest.raises(OutcomeUnknown, match=r"within 0\.1 s"):
            await connection.request("silent", b"x", timeout=0.1)


async def test_a_request_on_its_way_ends_with_the_connection(nats_url: str) -> None:
    """At once and as unknown, not after its timeout; the next one after the reconnect works."""
    async with plain_client(nats_url) as other, Proxy.before(nats_url) as proxy:
        sent = await other.subscribe("silent")
        await flushed(other)
        async with Connection.open(proxy.url, name="test") as connection:
            request = asyncio.create_task(connection.request("silent", b"x", timeout=600))
            await sent.next_msg(timeout=60)
            proxy.cut()
            with pytest.raises(OutcomeUnknown, match="lost"):
                await asyncio.wait_for(request, 60)
            await connection.up(30)
            assert connection.counters.reconnects == 1


async def test_while_disconnected_nothing_is_sent(nats_url: str, echo: str) -> None:
    """nats-py would keep it and send it later, when the caller has long had the error."""
    async with Proxy.before(nats_url) as proxy, Connection.open(proxy.url, name="test") as connection:
        proxy.open.clear()
        proxy.cut()
        await wait_until(lambda: not connection.connected)
        with pytest.raises(Unavailable, match="no connection") as error:
            await connection.request(echo, b"x")
        assert not isinstance(error.value, OutcomeUnknown)
        with pytest.raises(Unavailable, match=r"no connection to NATS at 127\.0\.0\.1"):
            await connection.up(0.05)
        proxy.open.set()
        await connection.up(30)
        assert (await connection.request(echo, b"x")).data == b"x"


async def test_a_transport_that_is_closed_counts_as_no_connection(nats_url: str, echo: str) -> None:
    """nats-py reports that it is connected until it reads the end of the stream. A request that fails by then is never sent."""
    async with Connection.open(nats_url, name="test") as connection:
        for _ in range(5):
            abort_transport(connection)
            assert connection.client.is_connected
            for _ in range(3):
                with pytest.raises(Unavailable, match="no connection") as error:
                    await connection.request(echo, b"x")
                assert not isinstance(error.value, OutcomeUnknown)
            assert not any(b"PUB" in waiting for waiting in connection.client._pending)
            await wait_until(lambda: not connection.client.is_connected)
            await connection.up(30)
            assert (await connection.request(echo, b"x")).data == b"x"


async def test_a_killed_server_is_noticed_at_once_and_found_again(nats_server: EmbeddedServer) -> None:
    """Not connected within a second of kill -9; connected again, by nats-py itself, once it is back, subscriptions and all."""
    opened = Connection.open(nats_server.url, name="test")  # an eager watchdog could be before nats-py on a busy machine
    async with opened as connection, plain_client(nats_server.url) as other:
        heard = await connection.client.subscribe("news")
        assert connection.connected
        await nats_server.kill()
        await wait_until(lambda: not connection.connected, timeout=60)
        await nats_server.start()
        await wait_until(lambda: connection.connected)
        await other.flush()
        await other.publish("news", b"x")
        assert (await heard.next_msg(timeout=30)).data == b"x"
        assert (connection.counters.reconnects, connection.counters.replaced) == (1, 0)


async def test_a_paused_server_does_not_count_as_connected(nats_server: EmbeddedServer) -> None:
    """SIGSTOP leaves the connection up: only an answer that does not come tells."""
    async with watched(nats_server.url) as connection:
        await stand_still(nats_server.pid)
        try:
            await wait_until(lambda: not connection.connected, timeout=30)
            with pytest.raises(Unavailable, match="does not answer"):
                await connection.ping(0.1)
        finally:
            os.kill(nats_server.pid, signal.SIGCONT)
        await wait_until(lambda: connection.connected, timeout=60)


async def test_a_client_that_is_dead_and_does_not_know_it_is_replaced(nats_url: str, echo: str) -> None:
    """Its read loop has ended, as after an error in a callback: it reports that it is connected, but reads no message."""
    async with watched(nats_url) as connection:
        dead = connection.client
        reading = dead._reading_task
        assert reading is not None
        reading.cancel()
        assert dead.is_connected
        await wait_until(lambda: connection.counters.replaced == 1)
        assert connection.client is not dead
        assert (await connection.request(echo, b"x")).data == b"x"
        await wait_until(lambda: dead.is_closed)


async def test_a_client_that_connects_again_during_a_check_is_not_replaced(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ping is lost with the connection. Its missing answer says nothing about the new one."""
    async with Proxy.before(nats_url) as proxy, watched(proxy.url) as connection:
        client, pings = connection.client, 0
        ask = client.rtt

        async def counted(**limit: int) -> float:
            nonlocal pings
            pings += 1
            return await ask(**limit)

        proxy.flowing.clear()
        monkeypatch.setattr(client, "rtt", counted)
        await wait_until(lambda: pings == 1)
        proxy.cut()
        proxy.flowing.set()
        await wait_until(lambda: pings > 1 or connection.counters.replaced)  # the watchdog has given up the first
        assert (connection.counters.reconnects, connection.counters.replaced) == (1, 0)
        assert connection.client is client


async def test_a_client_that_the_server_has_thrown_out_is_replaced(nats_url: str, echo: str) -> None:
    """A message over the limit makes the server close the connection, and nats-py closes itself for ever."""
    async with watched(nats_url) as connection:
        await connection.client.write([frame(echo, "", b"", b"x" * 1024**2 * 2)])
        await wait_until(lambda: connection.counters.replaced == 1)
        assert (await connection.request(echo, b"x")).data == b"x"


async def test_a_flush_that_is_given_up_does_not_end_the_client(nats_url: str, echo: str) -> None:
    """Its pong finds a future that is done: nats-py alone would stop reading."""
    async with Connection.open(nats_url, name="test") as connection:
        flush = asyncio.create_task(connection.client.flush())
        await asyncio.sleep(0)
        flush.cancel()
        await asyncio.wait({flush})
        assert flush.cancelled()
        await connection.client.flush(timeout=20)
        assert (await connection.request(echo, b"x")).data == b"x"
        assert connection.counters.replaced == 0


async def test_a_callback_that_raises_does_not_end_the_client(nats_url: str, echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged, and the client reconnects all the same."""

    def fail(*_: object) -> None:
        raise RuntimeError("broken callback")

    monkeypatch.setattr(Connection, "_on_disconnected", fail)
    monkeypatch.setattr(Connection, "_on_error", fail)
    async with Proxy.before(nats_url) as proxy, Connection.open(proxy.url, name="test") as connection:
        with structlog.testing.capture_logs() as logs:
            proxy.cut()
            await wait_until(lambda: connection.counters.reconnects == 1)
            await wait_until(lambda: any(entry["event"] == "nats callback failed" for entry in logs))
        assert (await connection.request(echo, b"x")).data == b"x"
