"""Asking a process that is somewhere on the broker to do something, and hearing what came of it.

The request goes to whoever listens on a subject; who it is meant for gives a sign of life at once and every second until it is
done. Nothing is stored: who is not there is not told.
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
"""Looks at a request: None where it is meant for somebody else, else what does it and gives the answer (not empty)."""

_SIGN = b""
_SIGN_EVERY = 1.0
_PATIENCE = 3.0
"""Seconds without a sign after which nobody is there, or any more."""


class RequestServer:
    """Takes requests on a subject, for as long as `run` runs."""

    def __init__(self, connection: Connection, subject: str, take: Taken) -> None:
        self._connection = connection
        self._subject = subject
        self._take = take
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard: Subscription | None = None

    async def run(self) -> None:
        """Listen until cancelled; what is being done then is cancelled, too."""
        heard: int | None = None
        try:
            while True:
                generation = self._connection.generation
                if generation != heard:  # a new client knows nothing of what the old one listened to
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
        except Exception:  # what is raised here would end nats-py's reading, and it would not say so
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
        with suppress(nats.errors.Error):  # who asked hears nothing, and knows what that means
            await self._connection.client.publish(reply, data)


async def ask(connection: Connection, subject: str, request: bytes) -> bytes:
    """Ask who is meant, and wait for the answer as long as there are signs of life.

    Raises Unavailable where nobody takes it, OutcomeUnknown where somebody did and was not heard of again.
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
        raise Unavailable(f"nobody who was asked ({subject}) took it") from error
    raise AssertionError("replies end with an error only")


__all__ = ["RequestServer", "Taken", "ask"]
