"""nats-py's client, with additions: messages taken off the wire, many written at once, and it survives a late pong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import nats.aio.client
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

log = structlog.get_logger(__name__)

Taker = Callable[[bytes, bytes, bytes, bytes | None], None]
"""Called with subject, reply subject (empty: none), payload and header block (None: none) of each message."""

_END = len(b"\r\n")


class _TapParser(Parser):
    """nats-py's parser, but a whole message for a tap is handed over in place: the parser moves each message three times."""

    def __init__(self, client: nats.aio.client.Client, takers: Mapping[int, Taker]) -> None:
        super().__init__(client)
        self._takers = takers
        self.heard = 0.0

    def reset(self) -> None:
        """Forget what has come."""
        super().reset()
        self._needed = 0

    async def parse(self, data: bytes = b"") -> None:
        """Take what the server has sent; the rest of it is kept until more comes."""
        self.heard = time.monotonic()
        if self.state != AWAITING_CONTROL_LINE:
            await super().parse(data)
        elif len(self.buf) + len(data) < self._needed:
            self.buf += data
        else:
            whole = bytes(self.buf) + data
            taken = self._take(whole)
            self.buf = bytearray(whole[taken:])
            if self.buf and not self._needed:
                await super().parse()

    def _take(self, whole: bytes) -> int:
        """Hand over the messages for taps that it begins with, and return how many bytes they have.

        `_needed` are the bytes of the next one, if that is for a tap too and not whole yet.
        """
        at, self._needed = 0, 0
        while (line := whole.find(b"\r\n", at)) > 0:
            # MSG or HMSG, subject, subscription, perhaps a reply subject, with HMSG bytes of the headers, bytes in all
            words = whole[at:line].split(b" ")
            headed = words[0] == b"HMSG"
            if not headed and words[0] != b"MSG":
                break
            begin = line + _END
            try:
                taker, end = self._takers.get(int(words[2])), begin + int(words[-1])
                body = begin + int(words[-2]) if headed else begin
            except (ValueError, IndexError):
                break  # nats-py's own parser reports the fault
            if taker is None or len(words) < 4 + headed:
                break
            if end + _END > len(whole):
                self._needed = end + _END - at
                break
            reply = words[3] if len(words) > 4 + headed else b""
            _hand_over(taker, words[1], reply, whole[body:end], whole[begin:body] if headed else None)
            at = end + _END
        return at


class TapClient(nats.aio.client.Client):
    """nats-py's client, and taps. It has to be a subclass: there is no public way to a message before it is parsed."""

    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[int, Taker] = {}
        self._ps: _TapParser = _TapParser(self, self._takers)

    @property
    def heard(self) -> float:
        """When something came from the server last, by the monotonic clock."""
        return self._ps.heard

    async def tap(self, subject: str, taker: Taker) -> Subscription:
        """Subscribe; `taker` is called for each message, in order, in the reading of the connection: it has to be quick.

        End it with `untap`. Like every subscription it outlives reconnects.
        """
        subscription = await self.subscribe(subject, cb=_not_called)
        self._takers[subscription._id] = taker  # noqa: SLF001 - the number that messages bear; nats-py does not publish it
        return subscription

    def tap_once(self, taker: Taker) -> int:
        """A number for a subscription that the caller writes to the server himself, and ends: it does not outlive reconnects."""
        self._sid += 1
        self._takers[self._sid] = taker
        return self._sid

    def end_tap(self, number: int) -> None:
        """Nothing more is taken under a number of `tap_once`."""
        self._takers.pop(number, None)

    async def untap(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        self._takers.pop(subscription._id, None)  # noqa: SLF001 - as in `tap`
        if not (self.is_closed or self.is_draining):
            await subscription.unsubscribe()

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        taker = self._takers.get(sid)
        if taker is None:
            await super()._process_msg(sid, subject, reply, data, headers)  # type: ignore[arg-type]  # its annotation forgets None
            return
        _hand_over(taker, subject, reply, data, headers)


def _hand_over(taker: Taker, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
    try:
        taker(subject, reply, data, headers)
    except Exception:  # an exception would end nats-py's reading, without a message
        log.exception("a tap failed", subject=subject.decode(errors="replace"))


async def _not_called(_: Msg) -> None:
    """nats-py wants a callback; `TapClient._process_msg` is before it."""


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
