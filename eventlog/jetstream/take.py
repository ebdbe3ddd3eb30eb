"""Takes one message at a time from a pull consumer, so that none is left with nobody.

A request that is given up (the worker drains, the wait is over) may be answered at that very moment. The message would then be
held back from all others until its AckWait has passed; here it is handed back.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec
import nats.errors
import structlog
from nats.aio.msg import Msg

from eventlog.jetstream.api import PREFIX
from eventlog.jetstream.client import Client

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
_TICK = 0.25
_GRACE = 1.0
_NAK = b"-NAK"
_NOTHING_THERE = frozenset({"404", "408"})


class Interrupted(Exception):
    """The request came to nothing: connection, server or consumer went away. Ask again, after a pause."""


async def take(client: Client, stream: str, consumer: str, seconds: float) -> Msg | None:
    """The consumer's next message, or None where there is none for so many seconds. Raises Interrupted."""
    taking = _Take(client)
    try:
        await taking.ask(f"{PREFIX}CONSUMER.MSG.NEXT.{stream}.{consumer}", seconds)
        answer = await taking.answered(seconds)
    except nats.errors.Error as error:
        raise Interrupted(repr(error)) from error
    except BaseException:
        await taking.give_up()
        raise
    if answer.reply:
        return answer
    status = answer.headers or {}
    if status.get("Status") in _NOTHING_THERE:
        return None
    raise Interrupted(f"{status.get('Status')} {status.get('Description', '')}".strip())


class _Take:
    """One request and its one answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reconnects = client.stats["reconnects"]
        self._inbox = client.new_inbox()
        self._answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._given_up = False

    async def ask(self, subject: str, seconds: float) -> None:
        subscription = await self._client.subscribe(self._inbox, cb=self._on_answer)
        await subscription.unsubscribe(limit=1)  # the server ends it with the answer
        await self._client.publish(
            subject, msgspec.json.encode({"batch": 1, "expires": int(seconds * _SECOND)}), reply=self._inbox
        )

    async def answered(self, seconds: float) -> Msg:
        end = time.monotonic() + seconds + _GRACE
        while not self._answer.done():
            if not self._client.is_connected or self._client.stats["reconnects"] != self._reconnects:
                raise Interrupted("the connection was lost")
            if time.monotonic() > end:
                raise Interrupted("the server did not answer")
            await asyncio.wait({self._answer}, timeout=_TICK)
        return self._answer.result()

    async def give_up(self) -> None:
        """Answer the request ourselves: the first answer, whichever it is, ends it on the server."""
        self._given_up = True
        if self._answer.done():
            await self._hand_back(self._answer.result())
        else:
            with contextlib.suppress(nats.errors.Error):  # the server forgets a client that is gone
                await self._client.publish(self._inbox, b"")

    async def _on_answer(self, message: Msg) -> None:
        if self._given_up:
            await self._hand_back(message)
        else:
            self._answer.set_result(message)

    async def _hand_back(self, message: Msg) -> None:
        if message.reply:
            log.info("handing back what came too late", subject=message.subject)
            with contextlib.suppress(nats.errors.Error):  # it comes back after its AckWait
                await self._client.publish(message.reply, _NAK)


__all__ = ["Interrupted", "take"]
