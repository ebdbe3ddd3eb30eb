"""Requests over one client: each reply is waited for by its token, and a lost connection ends the wait at once.

nats-py's own request leaves what was on its way at a disconnect to its timeout, cannot take several replies to one request, and
hands each reply through a queue and two tasks; here they share one subscription too, but are taken off the wire.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TypeVar

import attrs

from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.transport.client import NatsClient, frame

T = TypeVar("T")

ASK_AGAIN = 0.5
"""Seconds after which a request is repeated: a request to a leader that died is lost without an error."""

MOST_PENDING = 8 * 1024**2
"""Bytes that may wait to be written before requests are refused: above it nats-py would block, and not be cancellable."""

_NO_RESPONDERS = "503"
_STATUS_LINE = b"NATS/1.0 "


class Silence(OutcomeUnknown):
    """No answer came in time, over a connection that is there."""


class Denied(OutcomeUnknown):
    """The server denies messages on the subject to this user.

    Its report names no message: if permissions change while several are on their way, an earlier one may have arrived.
    """


class NotTaken(Unavailable):
    """Nothing on NATS takes the message: it was not sent to anyone."""


@attrs.frozen
class NatsReply:
    """A reply: the payload, and the header block as it was on the wire (None: none)."""

    data: bytes
    head: bytes | None = None

    @property
    def status(self) -> str | None:
        """The status of a reply without a message (`NATS/1.0 404 Message Not Found`), None for a message."""
        if self.head is None or not self.head.startswith(_STATUS_LINE):
            return None
        return self.head[len(_STATUS_LINE) : len(_STATUS_LINE) + 3].decode()

    @property
    def description(self) -> str:
        """The first line of the header block, for people."""
        return "" if self.head is None else self.head.partition(b"\r\n")[0].decode(errors="replace")

    def header(self, name: bytes) -> str:
        """The value of a header. Raises KeyError if it is missing."""
        _, found, rest = (self.head or b"").partition(b"\r\n%b:" % name)
        if not found:
            raise KeyError(name)
        return rest.partition(b"\r\n")[0].strip().decode()


class ReplyRouter:
    """The replies that one client waits for."""

    def __init__(self, client: NatsClient) -> None:
        self._client = client
        self._prefix = f"{client.new_inbox()}."
        self._tokens = itertools.count()
        self._waiting: dict[bytes, tuple[str, Callable[[NatsReply | OutcomeUnknown], None]]] = {}
        client.on_loss.add(self._lose)

    async def open(self) -> None:
        """Subscribe. nats-py subscribes again by itself after each reconnect."""
        await self._client.tap(f"{self._prefix}*", self._on_reply)

    def _lose(self) -> None:
        """End all waits: the connection is gone, and with it the replies."""
        for _, settle in list(self._waiting.values()):
            settle(OutcomeUnknown("the connection to NATS was lost before the answer came"))

    def deny(self, denied: str) -> None:
        """End the waits for replies to messages on a subject that the server denies; upper and lower case are the same."""
        for subject, settle in list(self._waiting.values()):
            if subject.lower() == denied.lower():
                settle(Denied(f"NATS does not permit this user to send to {subject}"))

    def _on_reply(self, subject: bytes, _: bytes, data: bytes, head: bytes | None) -> None:
        waiting = self._waiting.get(subject[len(self._prefix) :])
        if waiting is not None:  # else no caller waits any more
            waiting[1](NatsReply(data, head))

    async def send_batch(self, messages: Sequence[tuple[str, bytes, bytes]], timeout: float) -> NatsReply:  # noqa: ASYNC109 - ends with a special error
        """Send messages (subject, header lines, payload) in one piece; the reply to the last one.

        Of several the first asks for a reply too. If that is not empty it is the result: the reason why there is no other.
        Errors as in `request`.
        """
        result: asyncio.Future[NatsReply] = asyncio.get_running_loop().create_future()
        inbox, last = self._token()

        def settle_early(reply: NatsReply | OutcomeUnknown) -> None:
            if isinstance(reply, NatsReply) and reply.data == b"" and reply.status is None:
                return  # the batch is open
            _settle(result, reply)

        frames = [frame(subject, "", headers, payload) for subject, headers, payload in messages[1:-1]]
        subject, headers, payload = messages[-1]
        frames.append(frame(subject, inbox, headers, payload))
        first = b""
        if len(messages) > 1:
            inbox, first = self._token()
            subject, headers, payload = messages[0]
            frames.insert(0, frame(subject, inbox, headers, payload))
            self._waiting[first] = (subject, settle_early)
        self._waiting[last] = (messages[-1][0], partial(_settle, result))
        try:
            await self._write(frames)
            reply = await _within(timeout, result)
        finally:
            self._waiting.pop(last, None)
            self._waiting.pop(first, None)
        return _taken(messages[-1][0], reply)

    async def ask(self, subject: str, payload: bytes, timeout: float) -> NatsReply:  # noqa: ASYNC109 - ends with a special error
        """The reply to a message that may come to the server twice: without one it is sent again, every ASK_AGAIN seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        inbox, token = self._token()
        try:
            while True:
                result: asyncio.Future[NatsReply] = loop.create_future()
                self._waiting[token] = (subject, partial(_settle, result))  # a late reply to an earlier try is as good
                await self._write([frame(subject, inbox, b"", payload)])
                left = end - loop.time()
                try:
                    return _taken(subject, await _within(min(left, ASK_AGAIN), result))
                except Silence as error:
                    if left <= ASK_AGAIN:
                        raise _silence(timeout) from error
        finally:
            self._waiting.pop(token, None)

    async def request_many(self, subject: str, payload: bytes, timeout: float) -> AsyncIterator[NatsReply]:  # noqa: ASYNC109 - ends with a special error
        """The replies to a message, each within `timeout` seconds of the one before. The caller recognizes the last."""
        replies: asyncio.Queue[NatsReply | OutcomeUnknown] = asyncio.Queue()
        inbox, token = self._token()
        self._waiting[token] = (subject, replies.put_nowait)
        try:
            await self._write([frame(subject, inbox, b"", payload)])
            while True:
                try:
                    # Most replies come together with the one before: no timer is set for those.
                    async with asyncio.timeout(timeout if replies.empty() else None):
                        reply = await replies.get()
                except TimeoutError as error:
                    raise _silence(timeout) from error
                if isinstance(reply, OutcomeUnknown):
                    raise reply
                yield _taken(subject, reply)
        finally:
            self._waiting.pop(token, None)

    def _token(self) -> tuple[str, bytes]:
        """A subject for replies, and under which key they are waited for."""
        token = f"{next(self._tokens):x}"
        return self._prefix + token, token.encode()

    async def _write(self, frames: Sequence[bytes]) -> None:
        if not self._client.takes_frames:
            raise Unavailable("there is no connection to NATS")
        if self._client.pending_data_size > MOST_PENDING:
            raise Unavailable("NATS does not take what is sent: too much waits to be written")
        await self._client.write(frames)


def _settle(result: asyncio.Future[NatsReply], reply: NatsReply | OutcomeUnknown) -> None:
    if not result.done():
        if isinstance(reply, NatsReply):
            result.set_result(reply)
        else:
            result.set_exception(reply)


def _taken(subject: str, reply: NatsReply) -> NatsReply:
    """The reply of a listener that took the message. Raises Unavailable if the server reports that there is no listener."""
    if reply.status == _NO_RESPONDERS:
        raise NotTaken(f"nothing on NATS takes {subject}: no leader yet, or no such stream")
    return reply


async def _within(timeout: float, result: asyncio.Future[T]) -> T:  # noqa: ASYNC109 - see below
    """A separate timer on the future: a third of the cost of asyncio.timeout, and this is the busiest place there is."""
    timer = asyncio.get_running_loop().call_later(timeout, _expire, result, timeout)
    try:
        return await result
    finally:
        timer.cancel()


def _expire(result: asyncio.Future[T], timeout: float) -> None:
    if not result.done():
        result.set_exception(_silence(timeout))


def _silence(timeout: float) -> Silence:
    return Silence(f"NATS did not answer within {timeout:g} s")
