"""Frames of one turn of the event loop go to the server in two writes, in order: the first at once, the others together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from nats.aio.transport import TcpTransport

from eventlog.jetstream.client import NatsClient


class Wire:
    """The writer and the transport of a connection. Like the ones of uvloop it sends each write at once, and keeps no bytes."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    @property
    def transport(self) -> Wire:
        """The transport of the writer."""
        return self

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self.writes.append(data)

    def writelines(self, lines: Iterable[bytes]) -> None:
        """Send lines in one piece."""
        self.write(b"".join(lines))

    async def drain(self) -> None:
        """All has been sent."""

    def get_write_buffer_size(self) -> int:
        """All has been sent."""
        return 0

    def is_closing(self) -> bool:
        """It stays open."""
        return False


class Client(NatsClient):
    """A client that is connected to a wire, with nats-py's task that sends."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._status = self.CONNECTED
        self._transport = TcpTransport()  # type: ignore[no-untyped-call]  # nats-py has no types for it
        self._transport._io_writer = self._transport._io_reader = cast("Any", wire)
        self._flush_queue = asyncio.Queue()
        self._flusher_task = asyncio.create_task(self._flusher())

    async def end(self) -> None:
        """End nats-py's task."""
        assert self._flusher_task is not None
        self._flusher_task.cancel()
        await asyncio.wait({self._flusher_task})


async def test_frames_of_one_turn_share_a_write() -> None:
    wire = Wire()
    client = Client(wire)
    for turn in range(2):
        for number in range(20):
            await client.write([b"%d " % number])
        assert len(wire.writes) == 1 + 2 * turn, "the first frames do not wait"
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(wire.writes) == 2 + 2 * turn
    assert b"".join(wire.writes) == b"".join(b"%d " % number for number in range(20)) * 2
    await client.end()


async def test_frames_of_several_turns_do_not_wait() -> None:
    wire = Wire()
    client = Client(wire)
    for number in range(3):
        await client.write([b"a", b"b"])
        assert wire.writes == [b"ab"] * (number + 1)
        await asyncio.sleep(0)
    await client.end()
