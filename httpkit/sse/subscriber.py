"""One client of an event stream: its position, its buffer, writes to it, and its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

from aiohttp.http import StreamWriter

from eventlog.errors import LogDamaged
from httpkit.sse.frames import Frame
from httpkit.sse.stream_settings import StreamSettings


class ClientTooSlow(Exception):
    """The client does not read what it is sent."""


class ReplayFailed(Exception):
    """The log could not be read; the client comes back and tries again."""


class Subscriber:
    """One open stream.

    `number` is the place in the ring that it was sent everything before. While it is `parked` it has everything there is, and
    the hub writes to it; otherwise its own task does.
    """

    def __init__(
        self, writer: StreamWriter, transport: asyncio.Transport, only: frozenset[str] | None, settings: StreamSettings
    ) -> None:
        self.writer = writer
        self.only = only
        self.number = 0
        self.parked = False
        self.stopped = False
        self._transport = transport
        self._write_deadline = settings.write_deadline
        self._waiting: asyncio.Future[None] | None = None
        self._scope: asyncio.Timeout | None = None
        bounded: socket.socket = transport.get_extra_info("socket")
        bounded.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer)  # what the kernel holds for this client

    def wake(self) -> None:
        """Resume its task."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def stop(self) -> None:
        """The stream ends, whatever it waits for; a client that does not read is not waited for."""
        self.stopped = True
        self.wake()
        if self.stalled:
            self.abort()
        if self._scope is not None:
            self._scope.reschedule(0)

    async def wait(self) -> None:
        """Until `wake`."""
        if self.stopped:
            return
        self._waiting = self.writer.loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    async def park(self) -> None:
        """Let the hub write, until it cannot."""
        self.parked = True
        try:
            await self.wait()
        finally:
            self.parked = False

    async def next_of(self, frames: AsyncIterator[Sequence[Frame]]) -> Sequence[Frame] | None:
        """The next list of a replay; None at its end, or when the stream ends. Raises LogDamaged, ReplayFailed."""
        self._scope = asyncio.timeout(None)
        try:
            async with self._scope:
                return None if self.stopped else await anext(frames, None)
        except LogDamaged:
            raise
        except Exception as error:
            if self.stopped:
                return None
            raise ReplayFailed from error
        finally:
            self._scope = None

    @property
    def stalled(self) -> bool:
        """Whether it has not taken what was sent before."""
        return self.writer.protocol.writing_paused

    async def write(self, wire: bytes) -> None:
        """Send bytes. Raises ClientTooSlow if it has not taken what was sent before, ConnectionError if it is gone."""
        if self.stalled:
            try:
                async with asyncio.timeout(self._write_deadline):
                    await self.writer.drain()
            except TimeoutError:
                raise ClientTooSlow(f"took nothing for {self._write_deadline:g} s") from None
        await self.writer.write(wire, drain=False)

    def abort(self) -> None:
        """Close the connection without waiting for the client."""
        self._transport.abort()
