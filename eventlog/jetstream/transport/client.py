"""nats-py's client, with additions for an event log: writing many messages at once, and surviving a late pong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from nats.aio.transport import TcpTransport

from eventlog.jetstream.transport.raw_tap import TapClient

log = structlog.get_logger(__name__)

NO_HEADERS = b""
_HEADER_LINE = b"NATS/1.0\r\n"


def frame(subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
    """A message as it is on the wire: PUB without headers, HPUB with them (NATS client protocol).

    `headers` are complete lines (`Name: value`, each ended by CR LF) that nothing more is checked of, or empty.
    """
    if not headers:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(payload), payload)
    size = len(_HEADER_LINE) + len(headers) + 2
    return b"HPUB %b %b %d %d\r\n%b%b\r\n%b\r\n" % (
        subject.encode(),
        reply.encode(),
        size,
        size + len(payload),
        _HEADER_LINE,
        headers,
        payload,
    )


class NatsClient(TapClient):
    """A connection as nats-py keeps it up.

    `write` is a subclass's right: nats-py offers to publish one message at a time, each with its headers checked by regular
    expressions, which costs more than the server needs to store it in a batch.
    """

    _wrote_this_turn = False

    def __init__(self) -> None:
        super().__init__()
        self.on_loss: set[Callable[[], None]] = set()
        """Called when the connection is lost, and with it all that was requested on it. They raise nothing."""

    def lose(self) -> None:
        """Tell all that the connection is lost."""
        for callback in tuple(self.on_loss):
            callback()

    @property
    def server_id(self) -> str:
        """The id of the server it is connected to: another one after each start of the server."""
        return str(self._server_info.get("server_id", ""))

    @property
    def address(self) -> str:
        """The server that it is connected to, without user and password; empty if there is none."""
        url = self.connected_url
        return url.netloc.rpartition("@")[2] if url else ""

    @property
    def takes_frames(self) -> bool:
        """Whether it is connected, and its transport is open. nats-py learns about a closed transport later, when it reads."""
        return self.is_connected and not _closes(self._tcp())

    async def discard(self, connecting: asyncio.Future[Any] | None = None) -> None:
        """Close it, also if it may still be `connecting`.

        One cancellation is not enough: `asyncio.wait_for` of Python 3.11, which nats-py uses, loses one that comes with a result.
        """
        while connecting is not None and not connecting.done():
            connecting.cancel()
            await asyncio.wait({connecting}, timeout=0.1)
        await self.close()

    def cut_off(self) -> None:
        """Close its socket at once: to a server that hangs, bytes that it has not taken would keep the socket open."""
        if (transport := self._tcp()) is not None:
            transport.abort()

    async def write(self, frames: Sequence[bytes]) -> None:
        """Hand frames to the connection in one piece. No other frame goes between them, and the caller does not wait.

        The first frames of a turn of the event loop go to the transport at once, and do not wait for the task of nats-py.
        All others of the turn go together in the next one, since each write to the transport is a call of the system.
        Raises ConnectionResetError if the transport is closed: no byte of them is sent, also not later.
        """
        transport = self._tcp()
        if _closes(transport):
            raise ConnectionResetError("the connection to NATS is lost")
        waits = self._wrote_this_turn or self._pending_data_size or (transport and transport.get_write_buffer_size())
        if transport is not None and self.is_connected and not waits:
            # All earlier bytes have gone to the server. Otherwise nats-py limits the bytes that wait.
            self._wrote_this_turn = True
            asyncio.get_running_loop().call_soon(self._end_turn)
            transport.write(b"".join(frames))
            return
        self._pending.extend(frames)
        self._pending_data_size += sum(map(len, frames))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    def _end_turn(self) -> None:
        self._wrote_this_turn = False

    async def _flush_pending(self, force_flush: bool = False) -> Any:  # noqa: FBT001, FBT002 - as in nats-py
        """As in nats-py; but a closed transport is a lost connection, and no RuntimeError of the event loop."""
        if not _closes(self._tcp()):
            return await super()._flush_pending(force_flush)
        flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        flushed.set_result(None)
        return flushed

    def _tcp(self) -> asyncio.WriteTransport | None:
        """The transport of the event loop; None over WebSocket, and before the first connection."""
        if not isinstance(self._transport, TcpTransport):
            return None
        writer = self._transport._io_writer  # noqa: SLF001 - nats-py has no public name for it
        return None if writer is None else writer.transport

    async def _process_pong(self) -> None:
        """As in nats-py; but a pong that comes after its ping was given up must not end the read loop (InvalidStateError)."""
        pongs: list[asyncio.Future[Any]] = self._pongs
        if pongs and pongs[0].done():
            pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()


def safe(callback: Callable[..., None]) -> Callable[..., Awaitable[None]]:
    """A callback for nats-py, which stops without an error if a callback raises."""

    async def call(*args: Any) -> None:
        try:
            callback(*args)
        except Exception:
            log.exception("nats callback failed")

    return call


def _closes(transport: asyncio.WriteTransport | None) -> bool:
    return transport is not None and transport.is_closing()
