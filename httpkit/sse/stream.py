"""Event streams of one request: frames, the ring of the last ones, and the responses that write them."""

from __future__ import annotations

import asyncio
import socket
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress

import attrs
import structlog
from aiohttp import web
from aiohttp.http import StreamWriter
from aiohttp_sse import EventSourceResponse

from eventlog.commit import Position
from eventlog.errors import LogDamaged
from httpkit.messages.binding import ClientGone
from httpkit.messages.encoding import encode
from httpkit.messages.fields import member, message
from httpkit.problems import Busy
from httpkit.server.serving import when_gone

LAST_INDEX = 999_999
"""The index of no event: a position with it is after every event of its commit."""
WRITE = 64 * 1024
"""Bytes that are put together for one write."""


def _wire(frame: Frame) -> bytes:
    if "\n" in frame.event or "\r" in frame.event:
        raise ValueError("the name of an event has no line breaks")
    data = b"\ndata: ".join(frame.data.splitlines() or [b""])
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(frame.position).encode(), frame.event.encode(), data)


def _data(value: bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"the data of an event is text or bytes, not {type(value).__name__}; httpkit.encode makes JSON of a value")


@attrs.frozen
class Frame:
    """One event for clients: its position in the log, its name, its data (text or its UTF-8 bytes, usually JSON).

    `wire` are its bytes in the event stream format (WHATWG HTML, section 9.2), made once for all clients. Raises ValueError for
    a name with line breaks, TypeError for data that is neither text nor bytes.
    """

    position: Position
    event: str
    data: bytes = attrs.field(converter=_data)
    wire: bytes = attrs.field(init=False, repr=False, eq=False, default=attrs.Factory(_wire, takes_self=True))

    @property
    def size(self) -> int:
        """The bytes that it occupies."""
        return len(self.data) + len(self.wire)


@attrs.frozen
class FrameChunk:
    """Bytes for one write, how many frames are in them, and the numbers that they begin and end at (`next` is not in them)."""

    wire: bytes
    frames: int
    first: int
    next: int


class Ring:
    """The last frames of a stream, numbered from 0 as they come, bounded in count and in bytes.

    It has every frame with a position above `floor`; older ones have to be read from the log.
    """

    def __init__(self, floor: Position, *, max_frames: int, max_bytes: int) -> None:
        self.floor = floor
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: list[Frame] = []
        self._positions: list[Position] = []
        self.first = 0
        """The number of the oldest frame that is kept."""
        self._bytes = 0
        self._chunks: dict[tuple[int, frozenset[str] | None], FrameChunk] = {}

    @property
    def end(self) -> int:
        """The number that the next frame will have."""
        return self.first + len(self._frames)

    @property
    def last(self) -> Position:
        """The position of the newest frame, or the floor if there is none."""
        return self._positions[-1] if self._positions else self.floor

    def extend(self, frames: Sequence[Frame]) -> None:
        """Add frames, in order; those at or before the last position are known already and left out."""
        self._chunks.clear()
        for frame in frames:
            if frame.position > self.last:
                self._frames.append(frame)
                self._positions.append(frame.position)
                self._bytes += frame.size
        self._trim()

    def skip_to(self, floor: Position) -> None:
        """Restart after a position. Clients before it have lost the ring, even clients at its end."""
        self._chunks.clear()
        self.first = self.end + 1
        self._frames.clear()
        self._positions.clear()
        self._bytes = 0
        self.floor = max(self.floor, floor)

    def _trim(self) -> None:
        excess = max(0, len(self._frames) - self._max_frames)
        freed = sum(frame.size for frame in self._frames[:excess])
        while excess < len(self._frames) and self._bytes - freed > self._max_bytes:
            freed += self._frames[excess].size
            excess += 1
        if excess:
            self.floor = self._positions[excess - 1]
            self.first += excess
            self._bytes -= freed
            del self._frames[:excess], self._positions[:excess]

    def number_after(self, position: Position) -> int | None:
        """The number of the first frame after a position; None where frames after it may have left the ring."""
        if position < self.floor:
            return None
        return self.first + bisect_right(self._positions, position)

    def since(self, number: int) -> Sequence[Frame]:
        """The frames from a number on."""
        return self._frames[number - self.first :]

    def chunk(self, number: int, only: frozenset[str] | None) -> FrameChunk:
        """The frames from a number on, as many as fit one write, of the events in `only` (None: all).

        Clients at the same place share the bytes.
        """
        found = self._chunks.get((number, only))
        if found is None:
            found = self._chunks[number, only] = self._join(number, only)
        return found

    def _join(self, number: int, only: frozenset[str] | None) -> FrameChunk:
        parts: list[bytes] = []
        size, start = 0, number - self.first
        following = number
        for index in range(start, len(self._frames)):
            frame = self._frames[index]
            if parts and size + len(frame.wire) > WRITE:
                break
            following += 1
            if only is None or frame.event in only:
                parts.append(frame.wire)
                size += len(frame.wire)
        return FrameChunk(parts[0] if len(parts) == 1 else b"".join(parts), len(parts), number, following)


@attrs.frozen(kw_only=True)
class StreamSettings:
    """Bounds of a hub. Times in seconds.

    `heartbeat`: the longest time between two events `heartbeat`. `retry`: the time that clients wait before they reconnect.
    `write_deadline`: the time in which a client has to take a write. `ahead`: the longest wait for a client whose last event this
    process has not reached yet. `send_buffer` in bytes bounds the data that the kernel holds for one client.
    """

    heartbeat: float = 15.0
    retry: float = 2.0
    write_deadline: float = 3.0
    ahead: float = 2.0
    max_clients: int = 200
    max_replays: int = 4
    max_frames: int = 10_000
    max_bytes: int = 32 * 1024**2
    send_buffer: int = 128 * 1024


Replay = Callable[[Position, int], AsyncGenerator[Sequence[Frame], None]]
"""`replay(after, until)`: the frames with a position above `after` in commits up to sequence `until`, in order, in lists."""


class CannotResume(Exception):
    """The client's last event is not in this log."""


@message
class StreamReset:
    """The events after the client's last one are not in this log: the client has to load its state once more."""

    reason: str = member()


@message
class StreamHeartbeat:
    """The stream lives."""


OF_EVERY_STREAM: Mapping[str, type] = {"reset": StreamReset, "heartbeat": StreamHeartbeat}
"""The events that a stream of a hub sends besides the events of its service. A heartbeat has no id."""


@attrs.frozen
class ReplayChunk:
    """Frames that follow each other, and the position up to which all that were asked for have been given."""

    position: Position
    frames: Sequence[Frame] = ()


def asked_place(request: web.Request) -> Position | None:
    """The position after which the client resumes. The header comes first: a browser repeats the first query for ever."""
    text = request.headers.get("Last-Event-ID") or request.query.get("last_event_id")
    return place_of(text) if text else None


def place_of(text: str) -> Position:
    """The place that an id names. Raises CannotResume."""
    try:
        return Position.parse(text)
    except ValueError:
        raise CannotResume("Last-Event-ID is not an id of this stream") from None


def told_place(ring: Ring) -> bytes:
    """An id without an event: a client that is cut off before its first event resumes from here all the same."""
    return b"id: %b\n\n" % str(ring.last).encode()


def told_reset(error: Exception, ring: Ring) -> bytes:
    """A frame with the reason of a reset, and the id of the next place."""
    return b"event: reset\ndata: %b\n\n%b" % (encode(StreamReset(reason=str(error))), told_place(ring))


async def replayed(replay: Replay, after: Position, until: int) -> ReplayChunk:
    """The next frames after a place, from the log."""
    async with aclosing(replay(after, until)) as lists:
        async for frames in lists:
            return ReplayChunk(frames[-1].position, frames)
    return ReplayChunk(Position(until, LAST_INDEX))


def writes(frames: Sequence[Frame], after: Position, only: frozenset[str] | None) -> Iterator[list[bytes]]:
    """The bytes of the frames above a position, in lists of about one write."""
    part: list[bytes] = []
    size = 0
    for frame in frames:
        if frame.position <= after or (only is not None and frame.event not in only):
            continue
        part.append(frame.wire)
        size += len(frame.wire)
        if size >= WRITE:
            yield part
            part, size = [], 0
    if part:
        yield part


_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform"}


class BeatingResponse(EventSourceResponse):
    """An event stream with an event `heartbeat` in place of the comment, which an EventSource does not show to its page."""

    async def _ping(self) -> None:
        with suppress(ConnectionError, RuntimeError, TimeoutError):
            while True:
                await asyncio.sleep(self._ping_interval)
                await self.send("{}", event="heartbeat")


class TooManyStreams(Busy):
    """As many clients follow the events as this process takes on."""


async def begin(
    request: web.Request, *, heartbeat: float, kind: type[EventSourceResponse] = EventSourceResponse
) -> tuple[EventSourceResponse, StreamWriter]:
    """Begin an event stream. Return its answer, to be entered as a context, and its writer.

    It has a comment, or an event of a BeatingResponse, at least every `heartbeat` seconds. Raises ClientGone.
    """
    if request.transport is None or request.transport.is_closing():
        raise ClientGone("the client closed the connection before its event stream began")
    response = kind(ping_interval=heartbeat, send_timeout=2 * heartbeat, allow_all_methods=True)
    response.headers.update(_HEADERS)
    writer = await response.prepare(request)
    assert isinstance(writer, StreamWriter)
    return response, writer


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


_log = structlog.get_logger(__name__)


class Streams:
    """Sends frames to the clients of this process, at most `most` at a time; a comment every `heartbeat` seconds.

    A client that does not read is disconnected by its connection (`httpkit.server.serving`).
    """

    def __init__(self, *, most: int = 64, heartbeat: float = 15.0) -> None:
        self.most = most
        self._heartbeat = heartbeat
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def open(self) -> int:
        """How many clients follow something."""
        return len(self._open)

    def check(self) -> None:
        """Raise Busy or TooManyStreams if no further client can follow something now."""
        if self._closed:
            raise Busy("the server is ending; try again")
        if len(self._open) >= self.most:
            raise TooManyStreams(f"{self.most} clients follow something already; try again later")

    async def answer(self, request: web.Request, frames: AsyncGenerator[bytes, None]) -> web.StreamResponse:
        """Send these frames until they end or the client is gone; either way they are closed.

        Raises Busy, TooManyStreams, ClientGone.
        """
        self.check()
        response, _ = await begin(request, heartbeat=self._heartbeat)
        async with response:
            sending = asyncio.create_task(_send(response, frames))
            self._open.add(sending)
            try:
                with when_gone(request, sending.cancel):
                    await asyncio.wait({sending})
            finally:
                sending.cancel()
                self._open.discard(sending)
        if not sending.cancelled() and (error := sending.exception()) is not None:
            _log.error("an event stream ended early", path=request.path, exc_info=error)
        return response

    async def close(self, _: object = None) -> None:
        """End all streams; clients see a clean end. For `on_shutdown` of the application."""
        self._closed = True
        for sending in self._open:
            sending.cancel()


async def _send(response: web.StreamResponse, frames: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(frames):
        try:
            async for frame in frames:
                await response.write(frame)
        except ConnectionError:
            return  # it is gone
