"""Server-Sent Events: one hub per process sends each frame to every client, each event exactly once and in order.

A client is a place in the ring of the last frames. It gets the frames in the ring after its place, up to the size of one write,
and waits at the end. A client that reconnects with `Last-Event-ID` starts at that place. If the ring does not reach back to it,
the log is read first. So there is no queue per client, and a slow client does not delay the others: a write that it does not
take within the deadline ends its connection, and it resumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing

import attrs
import structlog
from aiohttp import web
from aiohttp.http import StreamWriter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog.commit import Position
from eventlog.errors import LogDamaged
from httpkit.problems import Busy
from httpkit.server.serving import when_gone
from httpkit.sse.stream import (
    LAST_INDEX,
    BeatingResponse,
    CannotResume,
    ClientTooSlow,
    Frame,
    Replay,
    ReplayChunk,
    ReplayFailed,
    Ring,
    StreamSettings,
    Subscriber,
    TooManyStreams,
    asked_place,
    begin,
    place_of,
    replayed,
    told_place,
    told_reset,
    writes,
)

log = structlog.get_logger(__name__)

COMES_BACK = 10.0
"""Seconds after which a client that was let go is not expected back any more: its `retry`, and time to connect."""
_AT_A_TIME = 128
"""Clients that are written to before others get a turn of the event loop."""


class Hub(Collector):
    """Sends the frames of one log to the clients of this process.

    `replay` reads frames from the log that have left the ring. `start` says from which sequence on frames are published; streams
    are refused before. All methods belong to the event loop's thread. As a collector of metrics it can be registered.
    """

    def __init__(self, replay: Replay, settings: StreamSettings | None = None) -> None:
        self._replay = replay
        self._settings = settings or StreamSettings()
        self._replays = asyncio.Semaphore(self._settings.max_replays)
        self._ring: Ring | None = None
        self.sequence = 0
        """The sequence of the log up to which frames have been published."""
        self._open = 0
        self._left_at = 0.0
        self._clients: set[Subscriber] = set()
        self._news = asyncio.Event()
        self._followers: set[asyncio.Event] = set()
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        self.sent = 0
        """Frames written to clients, each counted for each client."""
        self._dropped = 0

    @property
    def clients(self) -> int:
        """How many streams are open."""
        return self._open

    @property
    def has_no_clients(self) -> bool:
        """Whether no stream is open, and no client with missed events may come back to a stream of a moment ago."""
        return not self._open and asyncio.get_running_loop().time() - self._left_at > COMES_BACK

    def start(self, sequence: int) -> None:
        """Start after this sequence, the position of the read model. Frames after it will be published. Called once."""
        floor = Position(sequence, LAST_INDEX)
        self._ring = Ring(floor, max_frames=self._settings.max_frames, max_bytes=self._settings.max_bytes)
        self.sequence = sequence
        self._left_at = asyncio.get_running_loop().time()
        self._pump = asyncio.get_running_loop().create_task(self._deliver(self._ring))
        self._pump.add_done_callback(self._delivery_ended)

    def publish(self, frames: Sequence[Frame], sequence: int) -> None:
        """Send the frames, in order, of all commits up to a sequence. Call it when the read model has reached that sequence.

        Frames that were published before are left out. Raises RuntimeError before `start`.
        """
        if self._ring is None:
            raise RuntimeError("publish before start")
        self._ring.extend(frames)
        self.sequence = max(self.sequence, sequence)
        self._tell()

    async def _deliver(self, ring: Ring) -> None:
        """Write new frames to all clients that have everything before them, without waiting for any client."""
        while True:
            await self._news.wait()
            self._news.clear()
            chunk = ring.chunk(ring.end, None)
            for count, client in enumerate(tuple(self._clients), 1):
                if not client.parked or client.stalled or client.number < ring.first:
                    client.wake()
                    continue
                if client.only is not None or chunk.first != client.number or chunk.next != ring.end:
                    chunk = ring.chunk(client.number, client.only)
                if chunk.frames:
                    try:
                        await client.writer.write(chunk.wire, drain=False)
                    except ConnectionError:
                        client.stop()
                        continue
                    self.sent += chunk.frames
                client.number = chunk.next
                if chunk.next != ring.end:
                    client.wake()
                if count % _AT_A_TIME == 0:
                    await asyncio.sleep(0)

    def skip_to(self, sequence: int) -> None:
        """Go on after a sequence without the frames before it: clients are let go, come back, and read those from the log.

        Raises RuntimeError before `start`.
        """
        if self._ring is None:
            raise RuntimeError("skip_to before start")
        self._ring.skip_to(Position(sequence, LAST_INDEX))
        self.sequence = max(self.sequence, sequence)
        self._tell()

    def _tell(self) -> None:
        if self._clients:
            self._news.set()
        for news in self._followers:
            news.set()

    def _delivery_ended(self, pump: asyncio.Task[None]) -> None:
        if not pump.cancelled() and (error := pump.exception()) is not None:
            log.error("events are not delivered any more", exc_info=error)
        self._end()

    async def check(self) -> None:
        """For readiness. Raises Busy if no events are delivered."""
        if self._ring is None or self._closed:
            raise Busy("events are not available at the moment; try again")

    async def close(self, _: object = None) -> None:
        """End all streams; clients see a clean end. For `on_shutdown` of the application."""
        self._end()
        if self._pump is not None:
            self._pump.cancel()

    def _end(self) -> None:
        self._closed = True
        self._tell()
        for client in tuple(self._clients):
            client.stop()

    async def follow(self, after: str | None, *, only: frozenset[str]) -> AsyncGenerator[ReplayChunk, None]:
        """Yield the frames of the events named in `only`, for a caller that does not send them to a client as bytes.

        They are the frames after the event of this id, or from now on. The first passage has no frames, and the position. The
        iterator ends when the hub ends. A slow caller delays no other: it gets frames that have left the ring from the log.
        Raises Busy, CannotResume.
        """
        await self.check()
        ring = self._ring
        assert ring is not None
        news = asyncio.Event()

        async def heard() -> None:
            news.clear()
            await news.wait()

        self._followers.add(news)
        self._open += 1
        try:
            place = ring.last if after is None else place_of(after)
            await self._reach(place.sequence, heard, lambda: self._closed)
            yield ReplayChunk(place)
            while not self._closed:
                news.clear()
                number = ring.number_after(place)
                if number is None:
                    until = self.sequence
                    async with self._replays:
                        chunk = await replayed(self._replay, place, until)
                elif frames := ring.since(number):
                    chunk = ReplayChunk(frames[-1].position, frames)
                else:
                    await news.wait()
                    continue
                place = chunk.position
                yield attrs.evolve(chunk, frames=[frame for frame in chunk.frames if frame.event in only])
        except LogDamaged as error:
            raise CannotResume(str(error)) from error
        finally:
            self._followers.discard(news)
            self._open -= 1
            self._left_at = asyncio.get_running_loop().time()

    async def _reach(self, sequence: int, news: Callable[[], Awaitable[object]], has_ended: Callable[[], bool]) -> None:
        """Another process may have shown the client more than this one has reached yet."""
        try:
            async with asyncio.timeout(self._settings.ahead):
                while self.sequence < sequence and not has_ended():
                    await news()
        except TimeoutError:
            raise CannotResume(f"the log has not reached event {sequence}") from None

    async def stream(self, request: web.Request, *, only: frozenset[str] | None = None) -> web.StreamResponse:
        """Follow the events, or those named in `only`, until either side ends it. Raises Busy, TooManyStreams, ClientGone."""
        await self.check()
        assert self._ring is not None
        if self._open >= self._settings.max_clients:
            raise TooManyStreams(f"{self._settings.max_clients} clients follow the events already; try again later")
        self._open += 1
        try:
            response, writer = await begin(request, heartbeat=self._settings.heartbeat, kind=BeatingResponse)
            async with response:
                await self._serve(request, writer, only, self._ring)
        finally:
            self._open -= 1
            self._left_at = asyncio.get_running_loop().time()
        return response

    async def _serve(self, request: web.Request, writer: StreamWriter, only: frozenset[str] | None, ring: Ring) -> None:
        transport = request.transport
        if transport is None:
            return
        subscriber = Subscriber(writer, transport, only, self._settings)
        self._clients.add(subscriber)
        try:
            with when_gone(request, subscriber.stop):
                subscriber.number = await self._begin(subscriber, request, ring)
                await self._follow(subscriber, ring)
        except ConnectionError:
            log.debug("client of events is gone", remote=request.remote)
        except ClientTooSlow as error:
            self._dropped += 1
            log.info("client of events dropped", reason=str(error), remote=request.remote)
        except ReplayFailed:
            log.exception("events could not be read from the log")
        finally:
            self._clients.discard(subscriber)
            if subscriber.stalled:
                subscriber.abort()

    async def _begin(self, client: Subscriber, request: web.Request, ring: Ring) -> int:
        """Greet the client and bring it to the ring; gives the number of its first frame there."""
        retry = f"retry: {round(self._settings.retry * 1000)}\n".encode()
        try:
            after = asked_place(request)
            if after is None:
                number = ring.end
                await self._send(client, retry + told_place(ring))
                return number
            await self._send(client, retry + b"\n")
            return await self._catch_up(client, after, ring)
        except (CannotResume, LogDamaged) as error:
            number = ring.end
            await self._send(client, told_reset(error, ring))
            return number

    async def _catch_up(self, client: Subscriber, after: Position, ring: Ring) -> int:
        await self._reach(after.sequence, client.wait, lambda: client.stopped)
        position = after
        while (number := ring.number_after(position)) is None and not client.stopped:
            until = self.sequence
            async with self._replays:
                await self._send_replay(client, position, until)
            position = Position(until, LAST_INDEX)
        return ring.end if number is None else number

    async def _send_replay(self, client: Subscriber, after: Position, until: int) -> None:
        async with aclosing(self._replay(after, until)) as lists:
            while (frames := await client.next_of(lists)) is not None:
                for part in writes(frames, after, client.only):
                    await self._send(client, b"".join(part), len(part))

    async def _follow(self, client: Subscriber, ring: Ring) -> None:
        while not client.stopped:
            if client.number < ring.first:
                raise ClientTooSlow("is further behind than the ring reaches")
            if client.number == ring.end:
                await client.park()
                continue
            chunk = ring.chunk(client.number, client.only)
            if chunk.frames:
                await self._send(client, chunk.wire, chunk.frames)
            client.number = chunk.next

    async def _send(self, client: Subscriber, wire: bytes, frames: int = 0) -> None:
        await client.write(wire)
        self.sent += frames

    def collect(self) -> Iterator[Metric]:
        """Metrics: open streams, frames sent, clients dropped."""
        yield GaugeMetricFamily("sse_clients", "Open event streams.", value=self._open)
        yield CounterMetricFamily("sse_frames_sent", "Frames written to clients.", value=self.sent)
        yield CounterMetricFamily("sse_clients_dropped", "Clients that did not read fast enough.", value=self._dropped)
