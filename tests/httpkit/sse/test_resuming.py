"""A client that was cut off sees each event once and in order, or gets a reset."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence

import pytest

from eventlog.commit import Position
from eventlog.errors import LogTruncated
from httpkit.sse.stream import Frame, StreamSettings
from tests.httpkit.eventsource import EventSource
from tests.httpkit.loops import on_uvloop
from tests.httpkit.shop import Running, frame, open_shop
from tests.httpkit.sse.streams import QUICK, commits, follow_with_cuts
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


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
