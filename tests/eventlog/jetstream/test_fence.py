"""The fence compares the end of the log with acknowledgements that came before it asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eventlog.commit import Appended
from eventlog.errors import LogTruncated
from eventlog.jetstream import fence as fence_module
from eventlog.jetstream.fence import Fence
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.transport.connection import Connection

INCARNATION = "2026-11-23T00:00:00.000000Z"


class Broker:
    """A connection that has reconnected, and a server that answers on a signal of the test."""

    def __init__(self, end: int) -> None:
        self.counters = SimpleNamespace(reconnects=0, replaced=0)
        self.end = end
        self.answers = asyncio.Event()

    async def ask(self, connection: Any, subject: str) -> dict[str, Any]:
        del connection, subject
        end = self.end
        await self.answers.wait()
        return {"created": INCARNATION, "state": {"last_seq": end}, "config": {"name": "TEST", "num_replicas": 1}}


def fence_of(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Fence:
    monkeypatch.setattr(fence_module, "ask", broker.ask)
    fence = Fence(cast("Connection", broker), "TEST", MessageReader(cast("Connection", broker), "TEST"))
    broker.counters.reconnects += 1
    return fence


async def test_appends_of_others_while_the_server_answers_are_no_lost_end(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(end=505)
    fence = fence_of(broker, monkeypatch)
    fence.stored(Appended(sequence=505, replayed=False), 504)
    checking = asyncio.create_task(fence.check())
    await asyncio.sleep(0)
    fence.stored(Appended(sequence=508, replayed=False), 505)
    broker.answers.set()
    await checking
    fence.check_seen()


async def test_an_end_before_the_last_acknowledgement_closes_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(end=505)
    fence = fence_of(broker, monkeypatch)
    fence.stored(Appended(sequence=508, replayed=False), 505)
    broker.answers.set()
    with pytest.raises(LogTruncated, match="ends at sequence 505, and 508 was acknowledged"):
        await fence.check()
