"""Requests to a process that is somewhere on the broker, and their results.

The request is sent to all listeners on a subject. The listener that it is meant for sends a heartbeat at once and every second
until it is done. Requests are not stored: an absent listener does not get them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.client import NatsClient
from eventlog.jetstream.connection import Connection

log = structlog.get_logger(__name__)

Taken = Callable[[bytes], Awaitable[bytes] | None]
"""Looks at a request: None if it is meant for somebody else, else what does it and gives the answer (not empty)."""

_SIGN = b""
_SIGN_EVERY = 1.0
_PATIENCE = 3.0
"""Seconds without a heartbeat after which the listener is missing or gone."""


class RequestServer:
    """Takes requests on a subject, while `run` runs."""

    def __init__(self, connection: Connection, subject: str, take: Taken) -> None:
        self._connection = connection
        self._subject = subject
        self._take = take
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Listen until cancelled, which also cancels requests under way."""
        try:
            while True:
                await self._listen(self._connection.client)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _listen(self, client: NatsClient) -> None:
        """Listen on a client until the connection has a new one, which does not have the subscriptions of the old one."""
        lost = asyncio.Event()
        subscription: Subscription | None = None
        client.on_loss.add(lost.set)
        try:
            while client is self._connection.client:
                lost.clear()
                with suppress(nats.errors.Error):
                    subscription = subscription or await client.subscribe(self._subject, cb=self._on_request)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_SIGN_EVERY if subscription is None else None):
                        await lost.wait()
        finally:
            client.on_loss.discard(lost.set)
            if subscription is not None:
                with suppress(nats.errors.Error):  # a client that was replaced is closed
                    await subscription.unsubscribe()

    async def _on_request(self, message: Msg) -> None:
        try:
            work = self._take(message.data)
            if work is not None and message.reply:
                task = asyncio.create_task(self._serve(message.reply, work))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except Exception:  # an exception would end nats-py's reading, without a message
            log.exception("a request cannot be taken", subject=self._subject)

    async def _serve(self, reply: str, work: Awaitable[bytes]) -> None:
        doing = asyncio.ensure_future(work)
        try:
            while not doing.done():
                await self._say(reply, _SIGN)
                await asyncio.wait({doing}, timeout=_SIGN_EVERY)
            await self._say(reply, doing.result())
        except Exception:
            log.exception("a request failed", subject=self._subject)
        finally:
            doing.cancel()

    async def _say(self, reply: str, data: bytes) -> None:
        with suppress(nats.errors.Error):  # the other side gets no heartbeat, and handles that
            await self._connection.client.publish(reply, data)


async def ask(connection: Connection, subject: str, request: bytes) -> bytes:
    """Ask a listener, and wait for the answer while heartbeats arrive.

    Raises Unavailable if no listener takes it, OutcomeUnknown if one did and its heartbeats ended.
    """
    taken = False
    try:
        async for reply in connection.request_many(subject, request, timeout=_PATIENCE):
            if reply.data != _SIGN:
                return reply.data
            taken = True
    except OutcomeUnknown as error:
        if taken:
            raise OutcomeUnknown(f"the process that took the request on {subject} has stopped sending heartbeats") from error
        raise Unavailable(f"no process took the request ({subject})") from error
    raise AssertionError("replies end with an error only")
