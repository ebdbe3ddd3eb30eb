"""A connection of one simulated process to the broker: replaces the nats-py client below the real `Connection`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from eventlog.jetstream.connection import Connection, ConnectionOptions, ReplyRouter
from tests.support.log.virtual_time import OUTSIDE, VirtualTimeLoop

Taker = Callable[[bytes, bytes, bytes, bytes | None], None]
Handler = Callable[["Link", str, str, bytes, bytes], None]

_HEADER_LINE = b"NATS/1.0\r\n"


class Link:
    """The part of a client that `Connection` and `Pull` use, on a simulated wire.

    Requests arrive in order, and so do the deliveries of consumers. Replies overtake each other.
    """

    is_closed = is_reconnecting = is_draining = False
    pending_data_size = 0
    max_payload = 1024**2
    address = "simulated"
    server_id = "simulated"
    heard = 0.0

    def __init__(self, loop: VirtualTimeLoop, process: str, handler: Handler) -> None:
        self.process = process
        self.is_connected = True
        self.on_loss: set[Callable[[], None]] = set()
        self.dead = False
        """The process was killed: nothing comes or goes any more."""
        self._loop = loop
        self._handler = handler
        self._outside, self._inside = loop.context_of(OUTSIDE), loop.context_of(process)
        self._epoch = self._inboxes = 0
        self._arrives = self._delivers = 0.0
        self._takers: dict[str, Taker] = {}
        self._connection: Connection | None = None

    async def connection(self) -> Connection:
        """The real connection over this link."""
        connection = Connection(ConnectionOptions(servers=("nats://simulated",), name=self.process))
        client: Any = self
        connection._client, connection._router = client, ReplyRouter(client)
        await connection._router.open()
        connection._up.set()
        self._connection = connection
        return connection

    # The interface of a client

    @property
    def takes_frames(self) -> bool:
        return self.is_connected

    def new_inbox(self) -> str:
        """A subject for replies."""
        self._inboxes += 1
        return f"_INBOX.{self.process}.{self._inboxes}"

    async def tap(self, subject: str, taker: Taker) -> str:
        """Subscribe."""
        if self.dead:
            raise OSError("the process is gone")
        self._takers[subject.removesuffix(".*")] = taker
        return subject

    async def untap(self, subscription: str) -> None:
        """Unsubscribe."""
        self._takers.pop(subscription.removesuffix(".*"), None)

    async def rtt(self, timeout: float = 10.0) -> float:  # noqa: ASYNC109 - nats-py's
        """Ask for a sign of life."""
        await asyncio.sleep(0.001)
        return 0.001

    def lose(self) -> None:
        """Tell all that the connection is lost."""
        for callback in tuple(self.on_loss):
            callback()

    async def write(self, frames: Sequence[bytes]) -> None:
        """Send frames: each arrives after a while, unless the link breaks before."""
        if self.dead or not self.is_connected:
            return
        self._arrives = max(self._arrives, self._loop.time() + 0.0002 + self._loop.random.random() * 0.001)
        self._loop.call_at(self._arrives, self._arrive, frames, self._epoch, context=self._outside)

    def _arrive(self, frames: Sequence[bytes], epoch: int) -> None:
        for one in frames:
            if epoch == self._epoch and not self.dead:
                self._handler(self, *_parsed(one))

    # The side of the broker

    def deliver(
        self, delay: float, inbox: str, subject: str, reply: str, data: bytes, head: bytes | None, *, in_order: bool = False
    ) -> None:
        """Have a message arrive after `delay` seconds at the listener of `inbox`."""
        when = self._loop.time() + delay
        if in_order:
            when = self._delivers = max(self._delivers, when)
        arguments = inbox.rpartition(".")[0], subject.encode(), reply.encode(), data, head, self._epoch
        self._loop.call_at(when, self._take, *arguments, context=self._inside)

    def _take(self, prefix: str, subject: bytes, reply: bytes, data: bytes, head: bytes | None, epoch: int) -> None:
        taker = self._takers.get(prefix)
        if taker is not None and epoch == self._epoch and not self.dead:
            taker(subject, reply, data, head)

    def cut(self, seconds: float) -> None:
        """Break, and be back after some seconds."""
        if self.dead:
            return
        self._epoch += 1
        self._loop.call_soon(self._lost, context=self._inside)
        self._loop.call_later(seconds, self._back, self._epoch, context=self._inside)

    def _lost(self) -> None:
        self.is_connected = False
        if self._connection is not None:
            self._connection._on_disconnected(self._connection.client)

    def _back(self, epoch: int) -> None:
        if self.dead or epoch != self._epoch:
            return
        self.is_connected = True
        if self._connection is not None:
            self._connection._on_reconnected(self._connection.client)


def _parsed(frame: bytes) -> tuple[str, str, bytes, bytes]:
    """Subject, reply subject, header block and payload of a frame."""
    line, _, rest = frame.partition(b"\r\n")
    words = line.decode().split(" ")
    if words[0] == "HPUB":
        size = int(words[-2])
        return words[1], words[2] if len(words) > 4 else "", rest[:size], rest[size:-2]
    return words[1], words[2], b"", rest[:-2]


__all__ = ["Link"]
