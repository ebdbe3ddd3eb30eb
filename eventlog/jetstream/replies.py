"""Requests over one client: each reply is waited for by its token, and a lost connection ends the wait at once.

nats-py's own request leaves what was on its way at a disconnect to its timeout, cannot take several replies to one request, and
builds each token anew; here they share one subscription too, but know what became of the connection.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from nats.aio.msg import Msg

from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.client import Client, frame

T = TypeVar("T")

MOST_PENDING = 8 * 1024**2
"""Bytes that may wait to be written before requests are refused: above it nats-py would block, and not be cancellable."""

_NO_RESPONDERS = "503"


class Inbox:
    """The replies that one client waits for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = f"{client.new_inbox()}."
        self._tokens = itertools.count()
        self._waiting: dict[str, Callable[[Msg | OutcomeUnknown], None]] = {}

    async def open(self) -> None:
        """Subscribe. nats-py subscribes again by itself after each reconnect."""
        await self._client.subscribe(f"{self._prefix}*", cb=self._on_reply)

    def lose(self) -> None:
        """End all waits: the connection is gone, and with it the replies."""
        error = OutcomeUnknown("the connection to NATS was lost before the answer came")
        for settle in list(self._waiting.values()):
            settle(error)

    async def _on_reply(self, message: Msg) -> None:
        settle = self._waiting.get(message.subject[len(self._prefix) :])
        if settle is not None:  # else nobody waits any more
            settle(message)

    async def request(self, subject: str, payload: bytes, timeout: float, headers: bytes = b"") -> Msg:  # noqa: ASYNC109 - see `_result`
        """The reply to a message. Raises OutcomeUnknown (sent, no reply), Unavailable (not sent, or nobody there to take it)."""
        return await self.send_batch([(subject, headers, payload)], timeout)

    async def send_batch(self, messages: Sequence[tuple[str, bytes, bytes]], timeout: float) -> Msg:  # noqa: ASYNC109 - see `_result`
        """Send messages (subject, header lines, payload) in one piece; the reply to the last one.

        Of several the first asks for a reply too, and where that is not empty it is the result: it says why there is no other.
        Errors as in `request`.
        """
        result: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        last, first = self._token(), self._token()

        def settle(reply: Msg | OutcomeUnknown) -> None:
            if not result.done():
                if isinstance(reply, Msg):
                    result.set_result(reply)
                else:
                    result.set_exception(reply)

        def settle_early(reply: Msg | OutcomeUnknown) -> None:
            if isinstance(reply, Msg) and reply.data == b"" and not _nobody_there(reply):
                return  # the batch is open
            settle(reply)

        frames = [frame(subject, "", headers, payload) for subject, headers, payload in messages[1:-1]]
        subject, headers, payload = messages[-1]
        frames.append(frame(subject, self._prefix + last, headers, payload))
        if len(messages) > 1:
            subject, headers, payload = messages[0]
            frames.insert(0, frame(subject, self._prefix + first, headers, payload))
            self._waiting[first] = settle_early
        self._waiting[last] = settle
        try:
            await self._write(frames)
            reply = await self._result(result, timeout)
        finally:
            self._waiting.pop(last, None)
            self._waiting.pop(first, None)
        if _nobody_there(reply):
            raise Unavailable(f"nothing on NATS takes {messages[-1][0]}: no leader yet, or no such stream")
        return reply

    async def request_many(self, subject: str, payload: bytes, timeout: float) -> AsyncIterator[Msg]:  # noqa: ASYNC109 - see `_result`
        """The replies to a message, each within `timeout` seconds of the one before; the caller knows which is the last."""
        replies: asyncio.Queue[Msg | OutcomeUnknown] = asyncio.Queue()
        token = self._token()
        self._waiting[token] = replies.put_nowait
        try:
            await self._write([frame(subject, self._prefix + token, b"", payload)])
            while True:
                waiting = asyncio.ensure_future(replies.get())
                reply = await self._result(waiting, timeout)
                if isinstance(reply, OutcomeUnknown):
                    raise reply
                if _nobody_there(reply):
                    raise Unavailable(f"nothing on NATS takes {subject}")
                yield reply
        finally:
            self._waiting.pop(token, None)

    def _token(self) -> str:
        return f"{next(self._tokens):x}"

    async def _write(self, frames: Sequence[bytes]) -> None:
        if not self._client.is_connected:
            raise Unavailable("there is no connection to NATS")
        if self._client.pending_data_size > MOST_PENDING:
            raise Unavailable("NATS does not take what is sent: too much waits to be written")
        await self._client.write(frames)

    @staticmethod
    async def _result(result: asyncio.Future[T], timeout: float) -> T:  # noqa: ASYNC109 - of the two, this one is cheap
        """A timer of its own on the future: a third of the cost of asyncio.timeout, and this is the busiest place there is."""
        timer = asyncio.get_running_loop().call_later(timeout, _expire, result, timeout)
        try:
            return await result
        finally:
            timer.cancel()


def _expire(result: asyncio.Future[T], timeout: float) -> None:
    if not result.done():
        result.set_exception(OutcomeUnknown(f"NATS did not answer within {timeout:g} s"))


def _nobody_there(reply: Msg) -> bool:
    return reply.headers is not None and reply.headers.get("Status") == _NO_RESPONDERS


__all__ = ["Inbox"]
