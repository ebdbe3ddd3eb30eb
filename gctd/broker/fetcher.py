"""Takes single messages from a pull consumer, for any number of waiters, so that no message is left without one.

Waiters of the same moment share a request, which is answered with a message for each. A request that is given up
(the worker drains, the wait is over) may be answered at that very moment. Such a message would be held back from all others until
its AckWait has passed; here it is handed back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs
import msgspec
import structlog

from eventlog.jetstream import NO_HEADERS, PREFIX, NatsClient, frame

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
_GRACE = 1.0
_NAK = b"-NAK"
_ACK = b"$JS.ACK."
_NOTHING_THERE = frozenset({"404", "408"})


class Interrupted(Exception):
    """The request came to nothing: connection, server or consumer went away. Ask again, after a pause."""


@attrs.frozen
class FetchedMessage:
    """A message: the subject it was published on, its payload, and the subject that its acknowledgement goes to."""

    subject: str
    data: bytes
    reply: str


Waiter = asyncio.Future[FetchedMessage | None]


class Fetcher:
    """Takes messages from one consumer; `client` gives the client of the moment."""

    def __init__(self, client: Callable[[], NatsClient], stream: str, consumer: str) -> None:
        self._client = client
        self._subject = f"{PREFIX}CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._gathering: dict[float, list[Waiter]] = {}
        self._requests: set[_Request] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, seconds: float) -> FetchedMessage | None:
        """Return the consumer's next message; None if none comes within this time, 0 for no wait. Raises Interrupted."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        seconds = round(seconds, 2)
        if not self._gathering:
            loop.call_soon(self._ask)
        self._gathering.setdefault(seconds, []).append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and (taken := waiter.result()) is not None:
                self._hand_back(self._client(), taken)
            for request in tuple(self._requests):
                request.end_if_given_up()
            raise

    def _ask(self) -> None:
        """One request for all waiters that began in this turn of the loop, with one time limit."""
        gathering, self._gathering = self._gathering, {}
        client = self._client()
        for seconds, waiters in gathering.items():
            waiting = [waiter for waiter in waiters if not waiter.done()]
            if not waiting:
                continue
            if not client.takes_frames:
                for waiter in waiting:
                    waiter.set_exception(Interrupted("the connection was lost"))
                continue
            request = _Request(client, waiting, seconds, self)
            self._requests.add(request)
            request.begin(self._subject)

    def ended(self, request: _Request) -> None:
        """A request waits for nothing any more."""
        self._requests.discard(request)

    def send(self, client: NatsClient, frames: Sequence[bytes]) -> None:
        """Hand frames to a connection. A lost frame needs no repetition: the server forgets a client that is gone."""

        async def write() -> None:
            with suppress(ConnectionResetError):
                await client.write(frames)

        task = asyncio.create_task(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hand_back(self, client: NatsClient, taken: FetchedMessage) -> None:
        log.info("handing back what came too late", subject=taken.subject)
        self.send(client, [frame(taken.reply, "", NO_HEADERS, _NAK)])  # if it is lost, it comes back after its AckWait

    def give(self, client: NatsClient, taken: FetchedMessage, waiters: deque[Waiter]) -> None:
        """Give a message to the first who still waits, or back."""
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(taken)
                return
        self._hand_back(client, taken)


class _Request:
    """One request, and its answers: a message for each waiter, or a status when no more come."""

    def __init__(self, client: NatsClient, waiters: Sequence[Waiter], seconds: float, fetcher: Fetcher) -> None:
        self._client = client
        self._waiters = deque(waiters)
        self._size = len(waiters)
        self._seconds = seconds
        self._fetcher = fetcher
        self._came = 0
        self._number = client.tap_once(self._on_answer)
        self._timer = asyncio.get_running_loop().call_later(seconds + _GRACE, self._expire)
        client.on_loss.add(self._lose)

    def begin(self, subject: str) -> None:
        inbox = self._client.new_inbox()
        wait: dict[str, object] = {"expires": int(self._seconds * _SECOND)} if self._seconds else {"no_wait": True}
        request = msgspec.json.encode({"batch": self._size, **wait})
        subscribe = f"SUB {inbox} {self._number}\r\nUNSUB {self._number} {self._size}\r\n".encode()
        self._fetcher.send(self._client, [subscribe, frame(subject, inbox, NO_HEADERS, request)])

    def _lose(self) -> None:
        """A connection that is lost takes the request with it."""
        self._client.end_tap(self._number)
        self._finish(Interrupted("the connection was lost"))

    def _expire(self) -> None:
        self._unsubscribe()
        self._finish(Interrupted("the server did not answer"))

    def _on_answer(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if reply.startswith(_ACK):
            self._came += 1
            self._fetcher.give(self._client, FetchedMessage(subject.decode(), data, reply.decode()), self._waiters)
            if self._came == self._size:
                self._client.end_tap(self._number)
                self._finish(None)
            return
        _, _, status = (headers or b"").partition(b"\r\n")[0].decode(errors="replace").partition(" ")
        self._unsubscribe()
        self._finish(None if status[:3] in _NOTHING_THERE else Interrupted(status))

    def end_if_given_up(self) -> None:
        """Withdraw the request if no waiter is left. Messages that are on their way are handed back when they come."""
        if all(waiter.done() for waiter in self._waiters):
            self._unsubscribe()
            self._finish(None)

    def _unsubscribe(self) -> None:
        """The server forgets a request without a subscription for the answer."""
        self._fetcher.send(self._client, [b"UNSUB %d\r\n" % self._number])
        asyncio.get_running_loop().call_later(_GRACE, self._client.end_tap, self._number)

    def _finish(self, outcome: Interrupted | None) -> None:
        self._timer.cancel()
        self._client.on_loss.discard(self._lose)
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                if outcome is None:
                    waiter.set_result(None)
                else:
                    waiter.set_exception(outcome)
        self._fetcher.ended(self)
