"""Event streams: each event once and in order, over any number of cuts; a client that does not read harms only itself."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from statistics import median

import aiohttp
import attrs
import pytest
import structlog.testing
from prometheus_client import CollectorRegistry, generate_latest

from eventlog.commit import Position
from eventlog.errors import LogTruncated
from httpkit.problems import Busy
from httpkit.sse.frames import Frame
from httpkit.sse.hub import CannotResume, Hub, StreamSettings
from tests.httpkit.eventsource import EventSource
from tests.httpkit.loops import on_uvloop
from tests.httpkit.raw import ask, deaf
from tests.httpkit.shop import Running, frame, open_shop
from tests.support.pace import slowness, within
from tests.support.waiting import wait_until

QUICK = StreamSettings(heartbeat=0.2, write_deadline=0.3, ahead=0.2, send_buffer=4096)
STREAM = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


def commits(first: int, count: int, seed: int) -> list[list[Frame]]:
    """Frames as commits make them: one to four per sequence, here and there none."""
    dice = random.Random(seed)
    return [[frame(sequence, index) for index in range(dice.choice((0, 1, 1, 2, 4)))] for sequence in range(first, first + count)]


@on_uvloop
async def test_a_stream_is_an_event_stream_that_no_proxy_holds_back() -> None:
    async with open_shop() as shop, shop.http.get("/events") as response:
        headers = response.headers
        assert (response.status, headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert (headers["Cache-Control"], headers["X-Accel-Buffering"]) == ("no-cache, no-transform", "no")
        assert "Content-Encoding" not in headers


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


async def follow_with_cuts(
    shop: Running, batches: list[list[Frame]], cuts: int, dice: random.Random, path: str = "/events"
) -> list[str]:
    """Publish batches while one client is cut off at random points; give the ids it saw."""
    wanted = [str(one.position) for batch in batches for one in batch if path == "/events" or one.event == "news"]
    source = EventSource(shop.http, path)
    seen: list[str] = []
    connected = asyncio.Event()

    async def publish() -> None:
        await connected.wait()
        for batch in batches:
            shop.shop.publish(*batch)
            await asyncio.sleep(dice.choice((0, 0, 0, 0.003)))

    publishing = asyncio.create_task(publish())
    points = [*sorted(dice.sample(range(1, len(wanted)), cuts)), len(wanted)]
    for point in points:
        async with source.connected():
            if not seen:
                await wait_until(lambda: shop.shop.hub.clients)
                connected.set()
            seen += [event.id for event in await source.take(point - len(seen))]
    await publishing
    assert seen == wanted
    return seen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ring", [5, 10_000])
def test_a_client_that_is_cut_off_ten_times_sees_every_event_once_and_in_order(seed: int, ring: int) -> None:
    """Invariant I5, with events that share a commit, from the ring and (if it is small) from the log."""

    @on_uvloop
    async def scenario() -> None:
        # A small ring also drops clients that fall behind it while they are live; those come back by themselves in a browser.
        async with open_shop(streams=StreamSettings(max_frames=ring)) as shop:
            batches = [batch for batch in commits(8, 150, seed) if batch]
            await (follow_with_cuts if ring > 5 else follow_resuming)(shop, batches, 10, random.Random(seed))

    scenario()


async def follow_resuming(shop: Running, batches: list[list[Frame]], cuts: int, dice: random.Random) -> None:
    """The same where the server may cut off too: the client comes back until it has seen all."""
    wanted = [str(one.position) for batch in batches for one in batch]
    source = EventSource(shop.http)
    seen: list[str] = []
    async with source.connected():
        shop.shop.publish(*batches[0])
        seen += [event.id for event in await source.take(len(batches[0]))]

    async def publish() -> None:
        for batch in batches[1:]:
            shop.shop.publish(*batch)
            await asyncio.sleep(dice.choice((0, 0, 0.002)))

    publishing = asyncio.create_task(publish())
    while len(seen) < len(wanted):
        async with source.connected():
            try:
                seen += [event.id for event in await source.take(min(1 + len(wanted) // cuts, len(wanted) - len(seen)))]
            except (TimeoutError, OSError):
                pytest.fail("a stream neither went on nor ended")
    await publishing
    assert seen == wanted


@on_uvloop
async def test_two_streams_of_one_log_see_what_they_ask_for() -> None:
    async with open_shop() as shop:
        dice = random.Random(1)
        batches = [[frame(8 + n, i, dice.choice(("news", "thing"))) for i in range(2)] for n in range(60)]
        await follow_with_cuts(shop, batches, 5, dice, "/news")


@on_uvloop
async def test_a_client_that_is_cut_off_before_its_first_event_misses_nothing() -> None:
    async with open_shop() as shop:
        source = EventSource(shop.http)
        async with source.connected():
            with pytest.raises(TimeoutError):
                await source.take(1, within=0.1)
        shop.shop.publish(frame(8), frame(9))
        async with source.connected():
            assert [event.id for event in await source.take(2)] == ["8", "9"]


@on_uvloop
async def test_a_browser_that_comes_back_is_believed_by_its_header_and_not_by_the_query_it_began_with() -> None:
    async with open_shop() as shop:
        shop.shop.publish(frame(8), frame(9), frame(10))
        source = EventSource(shop.http, "/events?last_event_id=8")
        async with source.connected():
            assert [event.id for event in await source.take(1)] == ["9"]
        async with source.connected():
            assert [event.id for event in await source.take(1)] == ["10"]


@pytest.mark.parametrize("given", ["x", "-1", "1.2.3", "9" * 30, "8; DROP", "1e3"])
def test_an_id_that_is_none_is_answered_with_a_reset_and_the_stream_goes_on_live(given: str) -> None:
    @on_uvloop
    async def scenario() -> None:
        async with open_shop() as shop:
            shop.shop.publish(frame(8))
            source = EventSource(shop.http, last_id=given)
            async with source.connected():
                (reset,) = await source.take(1)
                assert (reset.name, reset.id) == ("reset", given), "the reset itself bears no id"
                shop.shop.publish(frame(9))
                assert [event.id for event in await source.take(1)] == ["9"]

    scenario()


@on_uvloop
async def test_an_id_that_the_log_does_not_reach_is_a_reset() -> None:
    async with open_shop(streams=QUICK) as shop:
        source = EventSource(shop.http, last_id="100")
        async with source.connected():
            assert [event.name for event in await source.take(1)] == ["reset"]


@on_uvloop
async def test_an_id_that_another_process_has_shown_already_is_waited_for() -> None:
    async with open_shop(streams=StreamSettings(ahead=5)) as shop:
        source = EventSource(shop.http, last_id="9")
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            shop.shop.publish(frame(8))
            shop.shop.publish(frame(9))
            shop.shop.publish(frame(10))
            assert [event.id for event in await source.take(1)] == ["10"]


@on_uvloop
async def test_an_id_that_has_left_the_log_is_a_reset() -> None:
    async with open_shop() as shop:

        async def truncated(after: Position, _: int) -> AsyncGenerator[Sequence[Frame], None]:
            nothing: Sequence[Sequence[Frame]] = ()
            for frames in nothing:
                yield frames
            raise LogTruncated(f"the log begins after {after}")

        shop.shop.hub._replay = truncated
        source = EventSource(shop.http, last_id="3")
        async with source.connected():
            (reset,) = await source.take(1)
            assert (reset.name, reset.data) == ("reset", '{"reason":"the log begins after 3"}')
            shop.shop.publish(frame(8))
            assert [event.id for event in await source.take(1)] == ["8"]


@on_uvloop
async def test_a_replay_may_begin_with_events_that_the_client_has_already() -> None:
    async with open_shop() as shop:

        async def whole_commits(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
            yield [one for one in shop.shop.log if after.sequence <= one.position.sequence <= until]

        shop.shop.hub._replay = whole_commits
        shop.shop.log.extend(frame(5, index) for index in range(4))
        source = EventSource(shop.http, last_id="5.1")
        async with source.connected():
            assert [event.id for event in await source.take(2)] == ["5.2", "5.3"]


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


@on_uvloop
async def test_where_the_log_cannot_be_read_the_stream_ends_and_the_client_resumes_later() -> None:
    async with open_shop() as shop:
        shop.shop.log.extend([frame(4), frame(5)])
        replay = shop.shop.hub._replay

        async def failing(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
            async for frames in replay(after, until):
                yield frames[:1]
                raise ConnectionRefusedError("the broker is away")

        shop.shop.hub._replay = failing
        source = EventSource(shop.http, last_id="3")
        async with source.connected():
            assert [event.id for event in await source.rest()] == ["4"]
        shop.shop.hub._replay = replay
        async with source.connected():
            assert [event.id for event in await source.take(1)] == ["5"]


@on_uvloop
async def test_events_that_are_published_again_are_left_out() -> None:
    async with open_shop() as shop:
        source = EventSource(shop.http)
        async with source.connected():
            await wait_until(lambda: shop.shop.hub.clients)
            shop.shop.publish(frame(8, 0), frame(8, 1))
            shop.shop.publish(frame(8, 1), frame(8, 2))
            assert [event.id for event in await source.take(3)] == ["8", "8.1", "8.2"]


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
async def test_a_quiet_stream_has_a_heartbeat() -> None:
    async with open_shop(streams=QUICK) as shop:
        source = EventSource(shop.http)
        async with source.connected():
            began = asyncio.get_running_loop().time()
            with within(2):
                reading = asyncio.create_task(source.rest())
                await wait_until(lambda: source.comments >= 3)
            assert asyncio.get_running_loop().time() - began > 2 * QUICK.heartbeat
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading


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


@on_uvloop
async def test_streams_are_503_before_the_hub_has_started_and_after_it_was_closed() -> None:
    async with open_shop() as shop:
        await shop.shop.hub.close()
        assert (await ask(shop.port, "GET /events")).status == 503
        shop.shop.hub = Hub(shop.shop.hub._replay)
        assert (await ask(shop.port, "GET /events")).status == 503


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE"])
async def test_a_stream_is_for_get_only(method: str) -> None:
    async with open_shop() as shop, shop.http.request(method, "/events") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET, OPTIONS")


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
