"""Append several commits in one atomic batch: all are stored, in a row, or none (NATS ADR-50; nats-py has no API for it)."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Sequence

from eventlog.commit import Appended
from eventlog.errors import Conflict, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream.append import WRONG_LAST_SEQUENCE, Ack, Appender, Message, persist, refusal
from eventlog.jetstream.message_reader import BrokerError
from eventlog.jetstream.transport.connection import Connection

MOST_MESSAGES = 1000
"""The server's own limit (`jetstream { limits { batch { max_msgs } } }`)."""
MOST_BYTES = 32 * 1024**2
"""Bytes of one batch, which are held in memory until it is stored."""

_TRY_TIMEOUT = 5.0
_DUPLICATE = 10201
_INCOMPLETE = 10176
"""A message of the batch is missing, since the leader changed or the server forgot the batch: no message of it is stored."""
_READ_AT_ONCE = 64


class Batches:
    """Sends batches to a stream, one at a time: the server commits one after the other anyway, and keeps only 50 open."""

    def __init__(self, connection: Connection, appends: Appender) -> None:
        self._connection = connection
        self._appends = appends
        self._turn = asyncio.Lock()
        self._prefix = secrets.token_urlsafe(6)
        self._numbers = itertools.count(1)

    async def append(self, messages: Sequence[Message], end: float) -> Sequence[Appended]:
        """Store all messages or none, or learn that they are stored, until `end` (time of the loop). No subject twice.

        Raises as `EventLog.append_together`.
        """
        size = sum(message.size for message in messages)
        if size > MOST_BYTES:
            raise TooLarge(f"{len(messages)} commits of {size:,} bytes; at most {MOST_BYTES:,} bytes can be stored together")

        sent = False

        def sending() -> None:
            nonlocal sent
            sent = True

        async def attempt(left: float) -> Sequence[Appended]:
            await self._appends.check_before(sent=sent)
            ack = await self.send(messages, left, sending)
            if ack.error is None:
                return sequences(ack, len(messages))
            if ack.error.err_code in {WRONG_LAST_SEQUENCE, _DUPLICATE}:
                return await self._find(messages, ack.error, left)
            if ack.error.err_code == _INCOMPLETE:
                raise Unavailable(str(ack.error))
            raise refusal(ack.error)

        return await persist(self._connection, f"{messages[0].subject} and {len(messages) - 1} others", attempt, end)

    async def send(self, messages: Sequence[Message], left: float, sending: Callable[[], None] | None = None) -> Ack:
        """One try, in turn, within `left` seconds; `sending` is called right before it goes out.

        Raises OutcomeUnknown, Unavailable (not sent, or no leader).
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + left
        try:
            async with asyncio.timeout_at(end):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Unavailable("other batches took all the time") from error
        try:
            if sending is not None:
                sending()
            reply = await self._connection.send_batch(self._framed(messages), min(end - loop.time(), _TRY_TIMEOUT))
        finally:
            self._turn.release()
        return self._appends.decode(reply.data)

    def _framed(self, messages: Sequence[Message]) -> Sequence[tuple[str, bytes, bytes]]:
        batch = f"Nats-Batch-Id: {self._prefix}{next(self._numbers):x}\r\nNats-Batch-Sequence: ".encode()
        framed = [
            (message.subject, b"%b%b%d\r\n" % (message.headers, batch, number), message.body)
            for number, message in enumerate(messages, 1)
        ]
        subject, headers, body = framed[-1]
        framed[-1] = (subject, headers + b"Nats-Batch-Commit: 1\r\n", body)
        return framed

    async def _find(self, messages: Sequence[Message], error: BrokerError, left: float) -> Sequence[Appended]:
        """Where the messages are stored, if an earlier try stored them. Raises Conflict, OutcomeUnknown."""
        first = await self._appends.find(messages[0], left)
        if first is None:
            # All are stored or none: the last one proves that the first one is stored and cannot be read.
            if await self._appends.find(messages[-1], left) is not None:
                raise OutcomeUnknown(
                    f"{messages[-1].subject} is stored, and {messages[0].subject} of the same batch cannot be read"
                )
            raise Conflict(f"another writer was first at one of {len(messages)} aggregates: {error}; load them and decide again")
        found: list[Appended | None] = [first]
        for start in range(1, len(messages), _READ_AT_ONCE):
            some = messages[start : start + _READ_AT_ONCE]
            found += await asyncio.gather(*(self._appends.find(message, left) for message in some))
        stored = [appended for appended in found if appended is not None]
        if len(stored) < len(messages):
            raise OutcomeUnknown(f"only {len(stored)} of {len(messages)} commits can be seen yet")
        return stored


def sequences(ack: Ack, count: int) -> Sequence[Appended]:
    """The sequences of a stored batch, which are consecutive. Raises OutcomeUnknown for an acknowledgement of something else."""
    if ack.count != count:
        raise OutcomeUnknown(f"NATS acknowledged {ack.count} messages of {count}")
    first = ack.seq - count + 1
    return [Appended(first + index) for index in range(count)]


__all__ = ["MOST_BYTES", "MOST_MESSAGES", "Batches", "sequences"]
