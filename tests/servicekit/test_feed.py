"""The event stream of a log with a damaged record: clients load their state once more, and no other event waits."""

from __future__ import annotations

import asyncio

import pytest

from eventlog import Position
from eventlog.support.timers import during
from eventlog.testing.memory import MemoryLog
from httpkit.sse.hub import Hub
from httpkit.sse.stream import LAST_INDEX, CannotResume, Frame
from servicekit.read_side import CommitFrames, EventChange, Feed
from tests.support.readside.ledger import ACCOUNT, REGISTRY, Book, Booked, Opened
from tests.support.waiting import wait_until

SHOWN = frozenset({"shown"})


def shown(change: EventChange) -> list[Frame]:
    """A frame that has the balance after an event."""
    return [Frame(change.event.position, "shown", b"%d" % change.after.balance)]


async def test_a_commit_after_a_record_that_cannot_be_read_holds_up_no_other_event() -> None:
    """Its intermediate states are not known. The command was decided on the state that the process had kept."""
    log = MemoryLog(REGISTRY)
    book = Book(log)
    frames = CommitFrames(log, {ACCOUNT.category: ACCOUNT}, shown)
    hub = Hub(frames.replay)
    feed = Feed(frames, hub)

    async def write(account: str, *events: Opened | Booked) -> None:
        commit = await log.at((await book.append(account, *events)).sequence)
        assert commit is not None
        feed.applied([commit])

    hub.start(0)
    async with during(feed.run()):
        await write("ann", Opened("ann"))
        await wait_until(lambda: hub.sequence == 1)
        client = hub.follow(None, only=SHOWN)
        assert (await anext(client)).frames == ()
        log.damage(1)
        await write("ann", Booked(1), Booked(2))
        with pytest.raises(CannotResume, match="sequence 1 cannot be read"):
            await asyncio.wait_for(anext(client), 5)
        await write("bob", Opened("bob"), Booked(7))
        async with asyncio.timeout(5):
            comes_back = hub.follow("1", only=SHOWN)
            with pytest.raises(CannotResume):
                assert [await anext(comes_back) for _ in range(2)] == []
            later = hub.follow(str(Position(2, LAST_INDEX)), only=SHOWN)  # the place that a reset names
            assert [frame.data for _ in range(2) for frame in (await anext(later)).frames] == [b"0", b"7"]
            await later.aclose()
    assert hub.sequence == 3
    assert [frame.position async for some in frames.replay(Position(2, LAST_INDEX), 3) for frame in some] == [
        Position(3),
        Position(3, 1),
    ]
    await hub.close()
