"""A client that does not read harms only itself, and a full or ending server lets clients go at once."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack
from statistics import median

import aiohttp
import attrs
import pytest
import structlog.testing

from httpkit.sse.stream import StreamSettings
from tests.httpkit.eventsource import EventSource
from tests.httpkit.loops import on_uvloop
from tests.httpkit.raw import ask, deaf
from tests.httpkit.shop import frame, open_shop
from tests.httpkit.sse.streams import QUICK
from tests.support.pace import slowness, within
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

STREAM = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


@on_uvloop
async def test_50_clients_that_do_not_read_are_dropped_and_disturb_no_other() -> None:
    """Fault F11."""
    # The reading client is in the same process. Without processor time for a while it does not count as slow.
    streams = attrs.evolve(QUICK, write_deadline=1.0)
    async with open_shop(streams=streams) as shop, AsyncExitStack() as stack:
        for _ in range(50):
            await stack.enter_async_context(deaf(shop.port, STREAM))
        source = EventSource(shop.http)
        await stack.enter_async_context(source.connected())
        await wait_until(lambda: shop.shop.hub.clients == 51)
        data = b'"' + b"x" * 4000 + b'"'
        taking = asyncio.create_task(source.take(400))
        delays = []
        for sequence in range(8, 408):
            started = time.monotonic()
            shop.shop.publish(frame(sequence, data=data))
            await asyncio.sleep(0.002)
            delays.append(time.monotonic() - started)
        got = await taking
        assert [event.id for event in got] == [str(sequence) for sequence in range(8, 408)]
        await wait_until(lambda: shop.shop.hub.clients == 1)
        assert median(delays) < 0.5 * slowness()


@on_uvloop
async def test_a_dropped_client_resumes_where_it_stopped_reading() -> None:
    async with open_shop(streams=QUICK) as shop:
        with structlog.testing.capture_logs() as logs:
            async with deaf(shop.port, STREAM):
                await wait_until(lambda: shop.shop.hub.clients)
                for sequence in range(8, 108):
                    shop.shop.publish(frame(sequence, data=b"x" * 10_000))
                    await asyncio.sleep(0.005)
                await wait_until(lambda: not shop.shop.hub.clients)
        assert "client of events dropped" in [line["event"] for line in logs]
        source = EventSource(shop.http, last_id="20")
        async with source.connected():
            assert [event.id for event in await source.take(87)] == [str(sequence) for sequence in range(21, 108)]


@on_uvloop
async def test_a_client_that_falls_behind_the_ring_is_let_go_cleanly_and_resumes_from_the_log() -> None:
    async with open_shop(streams=StreamSettings(max_frames=5, send_buffer=4096)) as shop:
        async with deaf(shop.port, STREAM) as sock:
            await wait_until(lambda: shop.shop.hub.clients)
            for sequence in range(8, 108):
                shop.shop.publish(frame(sequence, data=b"x" * 10_000))
                await asyncio.sleep(0)
            received = b""
            async with asyncio.timeout(20):
                while part := await asyncio.get_running_loop().sock_recv(sock, 65536):
                    received += part
                    if received.endswith(b"\r\n0\r\n\r\n"):
                        break
        ids = [int(found) for found in re.findall(rb"\nid: (\d+)\nevent", received)]
        assert ids == list(range(8, 8 + len(ids)))
        assert 0 < len(ids) < 100
        source = EventSource(shop.http, last_id=str(ids[-1]))
        async with source.connected():
            assert [event.id for event in await source.take(100 - len(ids))] == [str(n) for n in range(ids[-1] + 1, 108)]


@on_uvloop
async def test_clients_beyond_the_limit_are_503_and_a_place_is_free_at_once_when_one_leaves() -> None:
    async with open_shop(streams=StreamSettings(max_clients=2)) as shop, AsyncExitStack() as stack:
        await stack.enter_async_context(EventSource(shop.http).connected())
        async with EventSource(shop.http).connected():
            reply = await ask(shop.port, "GET /events")
            assert (reply.status, reply.json["type"]) == (503, "urn:problem:too-many-streams")
            assert "retry-after" in reply.headers
        await wait_until(lambda: shop.shop.hub.clients == 1, timeout=2)
        async with EventSource(shop.http).connected():
            pass


@on_uvloop
async def test_shutdown_with_open_streams_is_immediate_and_clean_even_where_one_does_not_read() -> None:
    async with AsyncExitStack() as serving, AsyncExitStack() as streams:
        shop = await serving.enter_async_context(open_shop(streams=StreamSettings(send_buffer=4096)))
        http = await streams.enter_async_context(aiohttp.ClientSession(shop.address.url))
        sources = [EventSource(http) for _ in range(5)]
        for source in sources:
            await streams.enter_async_context(source.connected())
        await streams.enter_async_context(deaf(shop.port, STREAM))
        await wait_until(lambda: shop.shop.hub.clients == 6)
        reading = [asyncio.create_task(source.rest()) for source in sources]
        for sequence in range(8, 58):
            shop.shop.publish(frame(sequence, data=b"x" * 10_000))
            await asyncio.sleep(0)
        await wait_until(lambda: shop.shop.hub.sent >= 5 * 50)
        with within(3):
            await serving.aclose()
        got = await asyncio.gather(*reading)
    assert {len(events) for events in got} == {50}
