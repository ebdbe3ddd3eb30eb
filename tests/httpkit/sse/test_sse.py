"""Event streams: each event once and in order, from the hub or from the log."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest
import structlog.testing
from prometheus_client import CollectorRegistry, generate_latest

from eventlog.commit import Position
from httpkit.problems import Busy
from httpkit.sse.hub import Hub
from httpkit.sse.stream import CannotResume, Frame, StreamSettings
from tests.httpkit.eventsource import EventSource
from tests.httpkit.loops import on_uvloop
from tests.httpkit.raw import ask
from tests.httpkit.shop import frame, open_shop
from tests.httpkit.sse.streams import QUICK, commits, follow_with_cuts
from tests.support.pace import within
from tests.support.waiting import wait_until


@pytest.mark.real
@on_uvloop
async def test_a_stream_is_an_event_stream_that_no_proxy_holds_back() -> None:
    async with open_shop() as shop, shop.http.get("/events") as response:
        headers = response.headers
        assert (response.status, headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert (headers["Cache-Control"], headers["X-Accel-Buffering"]) == ("no-cache, no-transform", "no")
        assert "Content-Encoding" not in headers


@pytest.mark.real
@on_uvloop
async def test_events_arrive_in_order_under_their_names_and_positions() -> None:
    async with open_shop() as shop:
        source = EventSource(shop.http)
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            shop.shop.publish(frame(8), frame(9, 0), frame(9, 1, "news", data=b'{"a":\n1}'))
            got = await source.take(3)
    assert [(event.name, event.data, event.id) for event in got] == [
        ("thing", '{"at":"8.0"}', "8"),
        ("thing", '{"at":"9.0"}', "9"),
        ("news", '{"a":\n1}', "9.1"),
    ]
    assert source.retry == 2000


@pytest.mark.real
@on_uvloop
async def test_two_streams_of_one_log_see_what_they_ask_for() -> None:
    async with open_shop() as shop:
        dice = random.Random(1)
        batches = [[frame(8 + n, i, dice.choice(("news", "thing"))) for i in range(2)] for n in range(60)]
        await follow_with_cuts(shop, batches, 5, dice, "/news")


@pytest.mark.real
@on_uvloop
async def test_a_batch_larger_than_the_ring_reaches_a_client_whole_if_only_by_coming_back() -> None:
    async with open_shop(streams=StreamSettings(max_frames=5)) as shop:
        source = EventSource(shop.http)
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            shop.shop.publish(frame(8))
            seen = await source.take(1)
            shop.shop.publish(*(frame(sequence) for sequence in range(9, 29)))
            seen += await source.rest()
        async with source.connected():
            seen += await source.take(21 - len(seen))
    assert [event.id for event in seen] == [str(sequence) for sequence in range(8, 29)]


@pytest.mark.real
@on_uvloop
async def test_what_a_hub_skips_reaches_its_clients_from_the_log() -> None:
    async with open_shop() as shop:
        hub, source, seen = shop.shop.hub, EventSource(shop.http), list[str]()
        async with source.connected():
            await wait_until(lambda: hub.clients)
            shop.shop.publish(frame(8), frame(9, 0), frame(9, 1))
            seen += [event.id for event in await source.take(3)]
            shop.shop.log.extend([frame(10), frame(11, 0), frame(11, 1)])
            hub.skip_to(11)
            assert await source.rest() == []
        async with source.connected(), EventSource(shop.http).connected() as fresh:
            await wait_until(lambda: hub.clients == 2)
            shop.shop.publish(frame(11, 1), frame(12))
            seen += [event.id for event in await source.take(4)]
            assert [event.id for event in await fresh.take(1)] == ["12"]
    assert seen == ["8", "9", "9.1", "10", "11", "11.1", "12"]


@pytest.mark.real
@on_uvloop
async def test_a_fault_in_delivery_is_logged_and_ends_the_streams_instead_of_keeping_them_silent() -> None:
    async with open_shop() as shop:
        source = EventSource(shop.http)
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            with structlog.testing.capture_logs() as logs:
                next(iter(shop.shop.hub._clients)).only = {}  # type: ignore[assignment]  # not hashable: a fault
                shop.shop.publish(frame(8))
                assert await source.rest() == []
        assert "events are not delivered any more" in [line["event"] for line in logs]
        with pytest.raises(Busy):
            await shop.shop.hub.check()
        assert (await ask(shop.port, "GET /events")).status == 503


@pytest.mark.real
@on_uvloop
async def test_events_that_are_published_again_are_left_out() -> None:
    async with open_shop() as shop:
        source = EventSource(shop.http)
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            shop.shop.publish(frame(8, 0), frame(8, 1))
            shop.shop.publish(frame(8, 1), frame(8, 2))
            assert [event.id for event in await source.take(3)] == ["8", "8.1", "8.2"]


@pytest.mark.real
@on_uvloop
async def test_a_quiet_stream_has_a_heartbeat_that_a_page_sees_and_that_moves_no_place() -> None:
    async with open_shop(streams=QUICK) as shop:
        source = EventSource(shop.http)
        async with source.connected():
            began = asyncio.get_running_loop().time()
            with within(2):
                reading = asyncio.create_task(source.rest())
                await wait_until(lambda: source.heartbeats >= 3)
            assert source.last_id == "7.999999"
            assert asyncio.get_running_loop().time() - began > 2 * QUICK.heartbeat
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading


@pytest.mark.real
@on_uvloop
async def test_streams_are_503_before_the_hub_has_started_and_after_it_was_closed() -> None:
    async with open_shop() as shop:
        await shop.shop.hub.close()
        assert (await ask(shop.port, "GET /events")).status == 503
        shop.shop.hub = Hub(shop.shop.hub._replay)
        assert (await ask(shop.port, "GET /events")).status == 503


@pytest.mark.real
@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE"])
async def test_a_stream_is_for_get_only(method: str) -> None:
    async with open_shop() as shop, shop.http.request(method, "/events") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET, OPTIONS")


@pytest.mark.real
@on_uvloop
async def test_a_hub_shows_its_clients_and_frames_as_metrics() -> None:
    async with open_shop() as shop:
        registry = CollectorRegistry()
        registry.register(shop.shop.hub)
        async with EventSource(shop.http).connected(), EventSource(shop.http).connected():
            await wait_until(lambda: shop.shop.hub.clients == 2)
            shop.shop.publish(frame(8), frame(9), frame(10))
            await wait_until(lambda: shop.shop.hub.sent == 6)
            text = generate_latest(registry).decode()
    assert "sse_clients 2.0" in text
    assert "sse_frames_sent_total 6.0" in text
    assert "sse_clients_dropped_total 0.0" in text


async def test_publishing_before_the_start_is_an_error() -> None:
    hub = Hub(lambda *_: pytest.fail("not asked"))
    with pytest.raises(RuntimeError, match="publish before start"):
        hub.publish([frame(1)], 1)
    with pytest.raises(RuntimeError, match="skip_to before start"):
        hub.skip_to(1)


@pytest.mark.parametrize("ring", [5, 10_000])
def test_who_makes_something_else_of_the_frames_is_given_each_once_and_in_order(ring: int) -> None:
    """Slower than the frames come, given up and begun again at random; from the ring and (if it is small) from the log."""

    @on_uvloop
    async def scenario() -> None:
        dice = random.Random(ring)
        batches = [batch for batch in commits(8, 120, ring) if batch]
        stored = [one for batch in batches for one in batch]

        async def replay(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
            wanted = [one for one in stored if after < one.position and one.position.sequence <= until]
            for start in range(0, len(wanted), 3):
                yield wanted[start : start + 3]

        hub = Hub(replay, StreamSettings(max_frames=ring, ahead=0.2))
        hub.start(7)

        async def publish() -> None:
            for batch in batches:
                hub.publish(batch, batch[-1].position.sequence)
                await asyncio.sleep(dice.choice((0, 0, 0, 0.001)))

        publishing = asyncio.create_task(publish())
        only = frozenset({"thing", "news"})
        seen: list[Position] = []
        place: str | None = "7.999999"
        while len(seen) < len(stored):
            left = dice.randrange(1, 40)
            async with aclosing(hub.follow(place, only=only)) as passages:
                async for passage in passages:
                    seen += [one.position for one in passage.frames]
                    place = str(passage.position)
                    left -= len(passage.frames)
                    if left <= 0 or len(seen) >= len(stored):
                        break
                    await asyncio.sleep(dice.choice((0, 0.002)))
        assert seen == [one.position for one in stored]
        await publishing
        with pytest.raises(CannotResume):
            await anext(hub.follow("9999", only=only))
        await hub.close()
        with pytest.raises(Busy):
            await anext(hub.follow(None, only=only))

    scenario()
