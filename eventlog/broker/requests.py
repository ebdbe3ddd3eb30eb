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
from eventlog.jetstream.transport.connection import Connection

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
        self._heard: Subscription | None = None

    async def run(self) -> None:
        """Listen until cancelled, which also cancels requests under way."""
        heard: int | None = None
        try:
            while True:
                generation = self._connection.generation
                if generation != heard:  # a new client does not have the subscriptions of the old one
                    with suppress(nats.errors.Error):
                        self._heard = await self._connection.client.subscribe(self._subject, cb=self._on_request)
                        heard = generation
                await asyncio.sleep(_SIGN_EVERY)
        finally:
            if self._heard is not None and heard == self._connection.generation:
                with suppress(nats.errors.Error):
                    await self._heard.unsubscribe()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

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
            raise OutcomeUnknown(f"who was asked ({subject}) is not heard of any more") from error
        raise Unavailable(f"no process took the request ({subject})") from error
    raise AssertionError("replies end with an error only")


__all__ = ["RequestServer", "Taken", "ask"]
