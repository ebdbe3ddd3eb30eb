"""Streams of a shop in tests: their settings, and frames as commits make them."""

from __future__ import annotations

import asyncio
import random

from httpkit.sse.stream import Frame, StreamSettings
from tests.httpkit.eventsource import EventSource
from tests.httpkit.shop import Running, frame
from tests.support.waiting import wait_until

QUICK = StreamSettings(heartbeat=0.2, write_deadline=0.3, ahead=0.2, send_buffer=4096)


def commits(first: int, count: int, seed: int) -> list[list[Frame]]:
    """Frames as commits make them: one to four per sequence, here and there none."""
    dice = random.Random(seed)
    return [[frame(sequence, index) for index in range(dice.choice((0, 1, 1, 2, 4)))] for sequence in range(first, first + count)]


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
