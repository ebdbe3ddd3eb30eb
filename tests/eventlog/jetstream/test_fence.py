"""The fence compares the end of the log with acknowledgements that came before it asked."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eventlog.commit import Appended
from eventlog.errors import LogTruncated, Unavailable
from eventlog.jetstream.api import MessageReader, StreamClosed, closed
from eventlog.jetstream.connection import Connection, NatsReply
from eventlog.jetstream.fence import Fence, StillLog

INCARNATION = "2026-11-23T00:00:00.000000Z"


class Broker:
    """A connection that has reconnected, and a server that answers on a signal of the test."""

    def __init__(self, end: int, **config: Any) -> None:
        self.config = config or {"name": "TEST", "num_replicas": 1}
        self.counters = SimpleNamespace(reconnects=0, replaced=0, untaken=0)
        self.end = end
        self.answers = asyncio.Event()

    async def ask(self, subject: str, *_: Any, **__: Any) -> NatsReply:
        assert subject == "$JS.API.STREAM.INFO.TEST"
        info = {
            "created": INCARNATION,
            "state": {"first_seq": 1, "last_seq": self.end},
            "config": self.config,
        }
        await self.answers.wait()
        return NatsReply(json.dumps(info).encode())


def fence_of(broker: Broker) -> Fence:
    fence = Fence(cast("Connection", broker), "TEST", MessageReader(cast("Connection", broker), "TEST"))
    broker.counters.reconnects += 1
    return fence


async def test_appends_of_others_while_the_server_answers_are_no_lost_end() -> None:
    broker = Broker(end=505)
    fence = fence_of(broker)
    fence.stored(Appended(sequence=505, replayed=False), 504)
    checking = asyncio.create_task(fence.check())
    await asyncio.sleep(0)
    fence.stored(Appended(sequence=508, replayed=False), 505)
    broker.answers.set()
    await checking
    fence.check_seen()


async def test_an_end_before_the_last_acknowledgement_closes_the_log_if_it_does_not_move() -> None:
    broker = Broker(end=505)
    fence = fence_of(broker)
    fence.stored(Appended(sequence=508, replayed=False), 505)
    broker.answers.set()
    now = 100.0
    fence._still = StillLog(lambda: now)
    for _ in range(2):
        with pytest.raises(Unavailable, match="ends at sequence 505, and 508 was acknowledged; this is looked at again"):
            await fence.check()
    now += 1.0
    with pytest.raises(LogTruncated, match="ends at sequence 505, and 508 was acknowledged"):
        await fence.check()


async def test_a_stream_that_is_repaired_is_not_judged() -> None:
    """It has the records that were restored so far: an end before the last acknowledgement means nothing."""
    broker = Broker(end=505, **closed({"name": "TEST", "num_replicas": 1, "subjects": ["test.*"]}))
    fence = fence_of(broker)
    fence.stored(Appended(sequence=508, replayed=False), 505)
    broker.answers.set()
    with pytest.raises(StreamClosed, match="is being repaired"):
        await fence.check()
