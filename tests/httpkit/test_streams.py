"""Event streams that one client has for itself: bounded in number, ended with the client and with the server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import aiohttp
import attrs
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.routes import Call, Nothing, Route
from httpkit.server.guard import Guard
from httpkit.server.serving import serving
from httpkit.sse.stream import Streams
from tests.httpkit.loops import on_uvloop
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@attrs.define
class Place:
    """A service whose stream counts, and counts its ends."""

    streams: Streams
    more: asyncio.Event = attrs.field(factory=asyncio.Event)
    asked: asyncio.Event = attrs.field(factory=asyncio.Event)
    ended: int = 0

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """One at once, one when there is more."""
        try:
            yield b"data: 1\n\n"
            await self.more.wait()
            yield b"data: 2\n\n"
        finally:
            self.ended += 1


async def count(request: Nothing, call: Call[Place]) -> web.StreamResponse:
    """Count."""
    return await call.services.streams.answer(call.http, call.services.frames())


async def count_late(request: Nothing, call: Call[Place]) -> web.StreamResponse:
    """Count, but only when the client has gone."""
    transport = call.http.transport
    assert transport is not None
    call.services.asked.set()
    await wait_until(transport.is_closing)
    return await count(request, call)


TABLE: tuple[Route[Place], ...] = (
    Route("GET", "/count", count, summary="Count", events={"message": int}),
    Route("GET", "/count-late", count_late, summary="Count late", events={"message": int}),
)

Ask = Callable[..., AbstractAsyncContextManager[aiohttp.ClientResponse]]


@asynccontextmanager
async def opened(most: int = 2) -> AsyncIterator[tuple[Place, Ask]]:
    place = Place(Streams(most=most, heartbeat=0.1))
    edge = Edge(title="t", version="1", description="d", guard=Guard(hosts=None))
    app = build_application(TABLE, place, edge, health=Health({}))
    app.on_shutdown.append(place.streams.close)
    async with aiohttp.ClientSession() as http, serving(app, edge, host="127.0.0.1", port=0) as address:
        yield place, lambda path="/count": http.get(f"{address.url}{path}")


@on_uvloop
async def test_a_stream_ends_with_its_frames_and_beats_meanwhile() -> None:
    async with opened() as (place, ask), ask() as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        read = b""
        while b": ping" not in read:
            read += await answer.content.readany()
        place.more.set()
        read += await answer.content.read()
        assert [line for line in read.splitlines() if line.startswith(b"data")] == [b"data: 1", b"data: 2"]
        assert place.ended == 1


@on_uvloop
async def test_streams_that_have_ended_leave_nothing_on_their_connection() -> None:
    async with opened() as (place, ask):
        place.more.set()
        for _ in range(20):
            async with ask() as answer:
                await answer.read()
        tasks = [one for one in gc.get_objects() if isinstance(one, asyncio.Task) and "_send" in repr(one.get_coro())]
        assert len(tasks) <= 1


@on_uvloop
async def test_a_client_that_is_gone_is_noticed_at_once_and_makes_room() -> None:
    async with opened(most=1) as (place, ask):
        async with ask() as first:
            await first.content.readany()
            async with ask() as second:
                assert (second.status, "Retry-After" in second.headers) == (503, True)
            first.close()
            await wait_until(lambda: place.ended == 1)
        async with ask() as third:
            assert third.status == 200
            third.close()


@on_uvloop
async def test_a_client_that_goes_as_its_stream_opens_is_no_error() -> None:
    async with opened() as (place, ask):
        with capture_logs() as logs:
            asking = asyncio.ensure_future(ask("/count-late").__aenter__())
            await place.asked.wait()
            asking.cancel()
            await wait_until(lambda: [line["status"] for line in logs if line["event"] == "request"] == [499])
        assert "error" not in {line["log_level"] for line in logs}
        assert place.streams.open == 0


@on_uvloop
async def test_the_end_of_the_server_ends_the_streams() -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as client:
        async with opened() as (place, ask):
            answer = await client.enter_async_context(ask())
            await answer.content.readany()
            began = loop.time()
            # The client stays connected while the server ends.
        assert loop.time() - began < 2
        assert place.ended == 1
        assert not answer.content.exception()
