"""One ephemeral pull consumer, read as far ahead as its credit reaches.

Requests for messages overlap while messages are pending: the next ones are sent before the messages of the last have come, so
that the server never waits. The requested and unread messages are bounded, in number and in bytes, and so is memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec
import nats.errors
import structlog
from nats.aio.subscription import Subscription

from eventlog.commit import Commit
from eventlog.errors import Unavailable
from eventlog.jetstream.api import PLAIN_ACK_TOKENS, PREFIX, ask
from eventlog.jetstream.transport.client import NO_HEADERS, frame
from eventlog.jetstream.transport.connection import Connection
from eventlog.registry import Registry
from eventlog.support.timers import until_tick

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
HEARTBEAT = 2.0
"""Seconds without a message after which the server sends a heartbeat for each request."""
SILENCE = 4.5
"""Seconds without a message or a heartbeat after which a consumer is taken for gone."""

GATHER, MANY = 0.002, 100
"""Seconds that commits wait for more if at least that many are still to come, so that a replay comes in big lists."""

REQUEST_LIFE = 30.0
"""Seconds until a request for messages expires, at least. Then the next one is sent. The server wants two heartbeats in it."""
CONSUMER_LIFE = 60.0
"""Seconds after which the server removes the consumer of a reader that is gone."""

LEAST_REQUEST = 100
LEAST_BYTES = 4 * 1024**2
"""Bytes that one request may be answered with, or two messages of the greatest size; some three requests are out at a time."""

_ACK = b"$JS.ACK."
_GOES_ON = frozenset({"Request Timeout", "Batch Completed", "Message Size Exceeds MaxBytes", "No Messages"})


class ConsumerLost(Exception):
    """The consumer is gone, or does not answer, or messages of it are missing: it has to be recreated."""


class Hole(Exception):
    """The server left a sequence out."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"sequence {found} came where {expected} was expected")
        self.expected = expected
        self.found = found


class Pull:
    """A consumer of the commits above sequence `after`: `async with Pull(...) as pull: commits = await pull.read()`.

    With `subject` only the commits on that subject, else all of them without a hole. `batch` is the most that `read` gives.
    """

    def __init__(
        self, connection: Connection, stream: str, registry: Registry, *, after: int, subject: str | None, batch: int
    ) -> None:
        self._connection = connection
        self._client = connection.client
        self._stream = stream
        self._registry = registry
        self._subject = subject
        self._batch = batch
        self._name = f"reader-{uuid4().hex}"
        self._inbox = self._client.new_inbox()
        self._subscription: Subscription | None = None
        self._request_size = max(batch, LEAST_REQUEST)
        self._request_bytes = max(LEAST_BYTES, 2 * self._client.max_payload)
        self.total = 0
        """How many commits there were to be read when the consumer was made."""

        self._next = after + 1
        self._delivered = self._delivered_at_request = 0
        self._credit = 0
        self._unread: list[Commit] = []
        self._wake = asyncio.Event()
        self._pending = 0
        self._waking: asyncio.Handle | None = None
        self._broken: ConsumerLost | Hole | None = None
        self._signs = self._signs_seen = 0
        self._watch: asyncio.TimerHandle | None = None
        self._silent = False
        self._doubts = 0

    async def __aenter__(self) -> Self:
        """Make the consumer. Raises Unavailable, Refused."""
        self._client.on_loss.add(self._lose)
        self._watch_on()
        try:
            self._subscription = await self._client.tap(f"{self._inbox}.*", self._take)
            config = {
                "name": self._name,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._next,
                "ack_policy": "none",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(CONSUMER_LIFE * _SECOND),
            }
            if self._subject is not None:
                config["filter_subject"] = self._subject
            body: dict[str, Any] = {"stream_name": self._stream, "config": config, "action": "create"}
            answer = await ask(self._connection, f"CONSUMER.CREATE.{self._stream}.{self._name}", body)
        except BaseException as error:
            await self._end()
            if isinstance(error, nats.errors.Error):
                raise Unavailable(f"cannot read the stream {self._stream}: {error!r}") from error
            raise
        self.total = self._pending = answer["num_pending"]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Remove the consumer; if the server cannot be reached, it does so itself after CONSUMER_LIFE."""
        await self._end()

    async def read(self, patience: float | None = None) -> list[Commit]:
        """The next commits: the present ones, at once; an empty list after `patience` seconds without any.

        Raises ConsumerLost and Hole, when all commits before it are read.
        """
        loop = asyncio.get_running_loop()
        end = None if patience is None else loop.time() + patience
        while True:
            if self._unread and self._wake.is_set():
                return self._read()
            if self._broken is not None:
                if not self._unread:
                    raise self._broken
                return self._read()
            if self._silent:
                await self._check()
                continue
            self._wake.clear()
            await self._ask()
            if not await self._woken(end):
                return []

    def _read(self) -> list[Commit]:
        if len(self._unread) <= self._batch:
            commits, self._unread = self._unread, []
        else:
            commits, self._unread = self._unread[: self._batch], self._unread[self._batch :]
        self._stop_waking()
        if len(self._unread) < self._batch:
            self._wake.clear()
            if self._unread:
                self._wake_soon()
        return commits

    @property
    def _enough(self) -> int:
        """Messages that may be on their way or unread at a new request. Each open request costs heartbeats, so few are open."""
        return 2 * self._request_size if self._pending > self._credit else self._request_size // 2

    async def _ask(self) -> None:
        while self._credit + len(self._unread) <= self._enough:
            request = {
                "batch": self._request_size,
                "max_bytes": self._request_bytes,
                "expires": int((REQUEST_LIFE + until_tick(HEARTBEAT)) * _SECOND),  # the next one begins at a tick of heartbeats
                "idle_heartbeat": int(HEARTBEAT * _SECOND),
            }
            subject = f"{PREFIX}CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
            self._credit += self._request_size
            self._delivered_at_request = self._delivered
            try:
                await self._client.write([frame(subject, f"{self._inbox}.1", NO_HEADERS, msgspec.json.encode(request))])
            except ConnectionResetError as error:
                raise ConsumerLost(str(error)) from error

    async def _woken(self, end: float | None) -> bool:
        try:
            async with asyncio.timeout_at(end):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    async def _check(self) -> None:
        """Nothing came for a moment: is there still anything to come? Raises ConsumerLost."""
        try:
            await self._connection.ping()  # what the server sent before its answer has been taken when this returns
        except Unavailable as error:
            raise ConsumerLost(str(error)) from error
        if self._signs == self._signs_seen:
            raise ConsumerLost("no heartbeat came")
        self._watch_on()

    def _watch_on(self) -> None:
        """See, in SILENCE seconds, whether there was a sign of the consumer since now."""
        if self._watch is not None:
            self._watch.cancel()
        self._silent, self._signs_seen = False, self._signs
        self._watch = asyncio.get_running_loop().call_later(SILENCE, self._look)

    def _look(self) -> None:
        if self._signs != self._signs_seen:
            self._watch_on()
        else:
            self._silent = True
            self._wake.set()

    def _take(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self._signs += 1
        if not reply.startswith(_ACK):
            self._take_status(headers or b"")
            return
        if self._broken is not None:
            return
        # $JS.ACK.(domain.account.)?stream.consumer.times.SEQUENCE.DELIVERY.time.PENDING(.random)? - ADR-15
        tokens = reply.split(b".")
        at = 5 if len(tokens) == PLAIN_ACK_TOKENS else 7
        sequence, delivery = int(tokens[at]), int(tokens[at + 1])
        self._credit -= 1
        if delivery != self._delivered + 1:
            self._break(ConsumerLost(f"delivery {delivery} came after {self._delivered}"))
            return
        if sequence != self._next and self._subject is None:
            self._break(Hole(self._next, sequence))
            return
        self._delivered, self._next = delivery, sequence + 1
        self._unread.append(Commit(sequence, subject.decode(), data, self._registry, headers))
        self._pending = int(tokens[at + 3])
        if not self._pending or len(self._unread) >= self._batch:
            self._wake.set()
        elif self._waking is None:
            self._wake_soon()

    def _take_status(self, headers: bytes) -> None:
        first, *lines = headers.decode(errors="replace").split("\r\n")
        code, _, description = first.partition(" ")[2].partition(" ")
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if code == "100":
            self._watch_on()
            behind = int(fields.get("Nats-Last-Consumer", 0)) > self._delivered
            self._doubts = self._doubts + 1 if behind else 0
            if self._doubts > 1:
                self._break(ConsumerLost("messages were lost on their way"))
        elif description in _GOES_ON:
            self._credit = max(0, self._credit - int(fields.get("Nats-Pending-Messages", 0)))
            if description == "Message Size Exceeds MaxBytes" and self._delivered == self._delivered_at_request:
                self._request_bytes *= 2  # a single message is larger
            self._wake.set()
        else:
            self._break(ConsumerLost(f"{code} {description}".strip()))

    def _lose(self) -> None:
        self._break(ConsumerLost("the connection was lost"))

    def _break(self, error: ConsumerLost | Hole) -> None:
        self._broken = self._broken or error
        self._wake.set()

    def _wake_soon(self) -> None:
        """Wake the reader when everything has been taken that the connection has received by now, in a replay a little later."""
        loop = asyncio.get_running_loop()
        self._waking = loop.call_soon(self._wake.set) if self._pending < MANY else loop.call_later(GATHER, self._wake.set)

    def _stop_waking(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None

    async def _end(self) -> None:
        self._client.on_loss.discard(self._lose)
        if self._watch is not None:
            self._watch.cancel()
        self._stop_waking()
        self._broken = self._broken or ConsumerLost("closed")
        self._unread = []
        with contextlib.suppress(nats.errors.Error, OSError):  # of a connection that is gone there is nothing to end
            if self._subscription is not None:
                await self._client.untap(self._subscription)
            if self._client.takes_frames:
                subject = f"{PREFIX}CONSUMER.DELETE.{self._stream}.{self._name}"
                await self._client.write([frame(subject, "", NO_HEADERS, b"")])
