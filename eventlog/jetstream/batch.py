"""Append several commits in one atomic batch: all are stored, in a row, or none (NATS ADR-50; nats-py has no API for it).

Of several messages of one subject in a batch only the first one may have a guard. The server refuses the whole batch if it knows
the id of one of its messages.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from eventlog.commit import Appended
from eventlog.errors import Conflict, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream.api import WRONG_LAST_SEQUENCE
from eventlog.jetstream.append import Ack, Appender, persist, refusal
from eventlog.jetstream.message import Message
from eventlog.jetstream.message_reader import BrokerError
from eventlog.jetstream.transport.connection import Connection

T = TypeVar("T")

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

    async def append(self, messages: Sequence[Message], end: float, *, sent: bool = False) -> Sequence[Appended]:
        """Store all messages or none, or learn that they are stored, until `end` (time of the loop). No subject twice.

        `sent`: they have been sent before without an answer. Raises as `EventLog.append_together`.
        """
        size = sum(message.size for message in messages)
        if size > MOST_BYTES:
            raise TooLarge(f"{len(messages)} commits of {size:,} bytes; at most {MOST_BYTES:,} bytes can be stored together")

        about = f"{messages[0].subject} and {len(messages) - 1} others"
        return await self._try(messages, end, self._find, about, sent=sent)

    async def append_row_again(self, row: Sequence[Message], end: float) -> Sequence[Appended] | None:
        """Store a row of commits of one aggregate, which was sent before without an answer, or find their sequences.

        None: they are not stored, and will never be, since another commit has their place or one of their keys. Raises
        OutcomeUnknown, LogDamaged.
        """
        return await self._try(row, end, self._find_row, row[0].subject, sent=True)

    async def _try(
        self,
        messages: Sequence[Message],
        end: float,
        find: Callable[[Sequence[Message], BrokerError, float], Awaitable[T]],
        about: str,
        *,
        sent: bool,
    ) -> Sequence[Appended] | T:
        """Send messages until they are stored, or `find` knows about a batch that is refused for a guard or an id."""
        unknown = sent

        def sending() -> Sequence[Message]:
            nonlocal sent
            sent = True
            return messages

        async def attempt(left: float) -> Sequence[Appended] | T:
            await self._appends.check_before(sent=sent)
            ack = await self.send(sending, left)
            if ack.error is None:
                return sequences(ack, len(messages))
            if ack.error.err_code in {WRONG_LAST_SEQUENCE, _DUPLICATE}:
                return await find(messages, ack.error, left)
            if ack.error.err_code == _INCOMPLETE:
                raise Unavailable(str(ack.error))
            raise refusal(ack.error)

        return await persist(self._connection, about, attempt, end, unknown=unknown)

    async def send(self, sending: Callable[[], Sequence[Message]], left: float) -> Ack:
        """One try, in turn, within `left` seconds; `sending` gives the messages right before they go out.

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
            messages = sending()
            if not messages:
                raise Unavailable("no message is left to be sent")
            reply = await self._connection.send_batch(self._framed(messages), min(end - loop.time(), _TRY_TIMEOUT))
        finally:
            self._turn.release()
        return self._appends.decode(reply.data)

    def _framed(self, messages: Sequence[Message]) -> Sequence[tuple[str, bytes, bytes]]:
        batch = f"Nats-Batch-Id: {self._prefix}{next(self._numbers):x}\r\nNats-Batch-Sequence: ".encode()
        framed = [
            (message.subject, b"%b%b%d\r\n" % (message.headers, batch, number), message.data)
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

    async def _find_row(self, row: Sequence[Message], error: BrokerError, left: float) -> Sequence[Appended] | None:
        """Where the commits of a row are stored; None if they cannot be. Raises OutcomeUnknown, Unavailable."""
        first = row[0]
        found = await self._appends.read_back({"next_by_subj": first.subject, "seq": first.expected + 1}, left)
        if found is None and error.err_code == WRONG_LAST_SEQUENCE:
            raise Unavailable(f"the leader is behind: {error}")
        if found is None or found.id not in {message.id for message in row}:
            return None
        places = range(found.sequence, found.sequence + len(row))
        stored = await asyncio.gather(*(self._appends.read_back({"seq": place}, left) for place in places))
        if [None if one is None else one.id for one in stored] != [message.id for message in row]:
            raise OutcomeUnknown(f"commits to {first.subject} are stored, and not all of their batch can be read")
        return [Appended(place, replayed=True) for place in places]


def sequences(ack: Ack, count: int) -> Sequence[Appended]:
    """The sequences of a stored batch, which are consecutive. Raises OutcomeUnknown for an acknowledgement of something else."""
    if ack.count != count:
        raise OutcomeUnknown(f"NATS acknowledged {ack.count} messages of {count}")
    first = ack.seq - count + 1
    return [Appended(first + index) for index in range(count)]
