"""Append one commit under its guard, and find out whether it was stored if the broker does not answer.

An answer that does not come means "unknown", never "failed": the same message is sent again, and where its guard then fails, the
aggregate's commit right after the guard is read back from the leader. If it is ours, we stored it: only one commit can ever
follow a given sequence of an aggregate, so this holds for ever, not only inside the broker's window for duplicates.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

import attrs
import msgspec

from eventlog.commit import Appended
from eventlog.errors import Conflict, KeyTaken, LogDamaged, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream.api import WRONG_LAST_SEQUENCE
from eventlog.jetstream.message import Message
from eventlog.jetstream.message_reader import BrokerError, MessageReader
from eventlog.jetstream.transport.connection import REQUEST_TIMEOUT, Connection
from eventlog.jetstream.transport.reply_router import Silence

T = TypeVar("T")

GUARD_IN_FLIGHT = 10164
"""Another message to this aggregate is on its way through the cluster; whether it is ours will show."""
DUPLICATE_IN_FLIGHT = 10158
STORE_FAILED = 10077
NO_RESOURCES = 10023
"""The server's or the account's store is full."""
_TOO_LARGE = {10054, 10097}

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
_LEAST = 0.02
"""Seconds that another try has to have: one that is sent without time for its answer only makes the outcome unknown."""
_SHORT = 1.0
"""Seconds: if a try with less time has no answer, the reason of the try before it says more."""
_LOOKS = 3


class Ack(msgspec.Struct):
    """The broker's answer to a message, or to the last one of a batch: then `seq` is that one's and `count` their number."""

    seq: int = 0
    duplicate: bool = False
    count: int = 0
    error: BrokerError | None = None


class _Identified(msgspec.Struct):
    id: str


@attrs.frozen
class ReadBack:
    """A stored commit: its place, and its id, None if it cannot be decoded."""

    sequence: int
    id: str | None


Check = Callable[[], Awaitable[None]]


async def nothing_to_check() -> None:
    """Any message may be sent at any time: to a stream whose messages do not depend on the ones before."""


class AppendRefused(Unavailable):
    """The broker refuses the append for a reason that trying again does not change."""


async def persist(
    connection: Connection,
    subject: str,
    attempt: Callable[[float], Awaitable[T]],
    end: float,
    *,
    unknown: bool = False,
) -> T:
    """The result of `attempt(seconds left)`, tried until `end` (time of the loop).

    It raises OutcomeUnknown if its message may be stored, AppendRefused if trying again cannot help, Unavailable otherwise. Any
    other error is final. The pauses go from 10 ms to half a second, with jitter. `unknown`: a message was sent before
    without an answer. Raises OutcomeUnknown or, if it was surely not stored, Unavailable.
    """
    loop = asyncio.get_running_loop()
    pause, reason = _FIRST_PAUSE, Unavailable("no time was left")
    tried = False
    while (left := end - loop.time()) > (_LEAST if tried else 0.0):
        try:
            return await attempt(left)
        except OutcomeUnknown as error:
            unknown = True
            if not (tried and left < _SHORT and isinstance(error, Silence)):
                reason = error
        except AppendRefused as error:
            reason = error
            break
        except Unavailable as error:
            reason = error
        tried = True
        await asyncio.sleep(max(0.0, min(pause * random.uniform(0.5, 1), end - loop.time())))  # noqa: S311 - jitter, not a secret
        pause = min(2 * pause, _LONGEST_PAUSE)
        try:
            await connection.up(max(0.0, end - loop.time()))
        except Unavailable as error:
            reason = error
            break
    raise given_up(subject, reason, unknown=unknown) from reason


def given_up(subject: str, reason: Unavailable, *, unknown: bool) -> Unavailable:
    """The error for a caller whose append did not end: OutcomeUnknown, or Unavailable if it was surely not stored."""
    if unknown:
        return OutcomeUnknown(
            f"it is not known whether the commit to {subject} was stored ({reason}). A command with an idempotency key "
            "may be repeated with it: it takes effect once. Without one, look whether it took effect before repeating it"
        )
    return Unavailable(f"the commit to {subject} was not stored: {reason}")


class Appender:
    """Appends messages to a stream one by one, and reads back what is stored."""

    def __init__(self, connection: Connection, reads: MessageReader, check: Check = nothing_to_check) -> None:
        """`check` is awaited before each message is sent, also before it is sent again. It raises if it must not be."""
        self.check = check
        self._connection = connection
        self._reads = reads
        self._ack = msgspec.json.Decoder(Ack)
        self._identified = msgspec.json.Decoder(_Identified)

    def decode(self, reply: bytes) -> Ack:
        """The broker's answer. Raises OutcomeUnknown if it cannot be read."""
        try:
            return self._ack.decode(reply)
        except msgspec.DecodeError as error:
            raise OutcomeUnknown(f"NATS answered with something else than an acknowledgement: {reply[:100]!r}") from error

    async def append(self, message: Message, end: float, *, unknown: bool = False) -> Appended:
        """Store a message, or learn that it is stored, until `end` (time of the loop).

        `unknown`: it has been sent before without an answer. Raises as `EventLog.append`.
        """
        looks = 0

        async def attempt(left: float) -> Appended:
            nonlocal looks, unknown
            await self.check_before(sent=unknown)
            try:
                ack = await self.send(message, min(left, REQUEST_TIMEOUT))
                if ack.error is not None and ack.error.err_code != WRONG_LAST_SEQUENCE:
                    raise refusal(ack.error)
            except OutcomeUnknown:
                unknown = True  # from now on a record that cannot be found may be this one, and damaged
                raise
            if ack.error is None and not ack.duplicate:
                return Appended(ack.seq)
            found = await self._find_or_taken(message, ack, left)
            if found is not None:
                return found
            looks += 1
            if looks == _LOOKS and not unknown:
                raise Conflict(f"{message.subject} is not at sequence {message.expected}, and never was: {ack.error}")
            raise Unavailable(f"the leader is behind: {ack.error}")

        return await persist(self._connection, message.subject, attempt, end, unknown=unknown)

    async def check_before(self, *, sent: bool) -> None:
        """Check that a message may be sent. Raises LogDamaged, or OutcomeUnknown if it was `sent` before without an answer."""
        try:
            await self.check()
        except LogDamaged as error:
            if sent:
                raise OutcomeUnknown(str(error)) from error
            raise

    async def send(self, message: Message, timeout: float) -> Ack:  # noqa: ASYNC109 - passed on
        """One try. Raises OutcomeUnknown, Unavailable (not sent, or no leader)."""
        reply = await self._connection.request(message.subject, message.data, headers=message.headers, timeout=timeout)
        return self.decode(reply.data)

    async def _find_or_taken(self, message: Message, ack: Ack, left: float) -> Appended | None:
        """As `find`; raises KeyTaken where the broker has dropped the message for another commit with its key."""
        if not ack.duplicate:
            return await self.find(message, left)
        found = await self.read_back({"seq": ack.seq}, left)
        if found is None:
            return None
        if found.id != message.id:
            earlier = await self.find(message, left)  # it may be stored for long, and its id be remembered for another message
            if earlier is not None:
                return earlier
            raise KeyTaken(ack.seq)
        return Appended(ack.seq, replayed=True)

    async def find(self, message: Message, timeout: float) -> Appended | None:  # noqa: ASYNC109 - passed on
        """Where the message is stored, read from the leader; None if nothing follows its guard.

        Raises Conflict where another commit follows it, OutcomeUnknown where the leader does not answer.
        """
        found = await self.read_back({"next_by_subj": message.subject, "seq": message.expected + 1}, timeout)
        if found is None:
            return None
        if found.id != message.id:
            raise Conflict(
                f"another writer was first: {message.subject} continued from sequence {message.expected} "
                f"to {found.sequence}; load it again and decide again"
            )
        return Appended(found.sequence, replayed=True)

    async def read_back(self, request: dict[str, object], timeout: float) -> ReadBack | None:  # noqa: ASYNC109 - passed on
        """A message as the leader has it; None if it has none that can be read. Raises OutcomeUnknown without an answer."""
        try:
            found = await self._reads.leader(request, min(timeout, REQUEST_TIMEOUT))
        except Unavailable as error:
            raise OutcomeUnknown(f"cannot read back from the leader: {error}") from error
        return None if found is None else ReadBack(found.sequence, self._id_of(found.data))

    def _id_of(self, data: bytes) -> str | None:
        try:
            return self._identified.decode(data).id
        except msgspec.DecodeError:
            return None


def refusal(error: BrokerError) -> Exception:
    """Return the meaning of a broker's error other than a failed guard for an append."""
    meant = _meaning(error)
    if isinstance(meant, Unavailable) and error.err_code not in {GUARD_IN_FLIGHT, DUPLICATE_IN_FLIGHT}:
        meant.code = error.err_code or None
    return meant


def _meaning(error: BrokerError) -> Exception:
    if error.err_code in _TOO_LARGE:
        return TooLarge(f"the stream does not take a commit of this size: {error}")
    if error.err_code == GUARD_IN_FLIGHT:
        return Unavailable(str(error))
    full = error.err_code == STORE_FAILED and "maximum" in error.description  # the stream's limit: an operator can raise it
    full = full or error.err_code == NO_RESOURCES
    if error.err_code == DUPLICATE_IN_FLIGHT or (error.err_code == STORE_FAILED and not full):
        return OutcomeUnknown(str(error))
    if full or error.code < HTTPStatus.TOO_MANY_REQUESTS:
        return AppendRefused(str(error))
    return Unavailable(str(error))  # no leader, no quorum, over a limit
