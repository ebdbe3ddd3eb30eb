"""Appends: one commit under its guard, commits that share a batch, and whether they were stored if the broker does not answer.

An answer that does not come means "unknown", never "failed": the same message is sent again, and where its guard then fails, the
aggregate's commit right after the guard is read back from the leader. If it is ours, we stored it: only one commit can ever
follow a given sequence of an aggregate, so this holds for ever, not only inside the broker's window for duplicates.

A batch is atomic: all of it is stored, in a row, or none (NATS ADR-50; nats-py has no API for it). Of several messages of one
subject in a batch only the first one may have a guard. The server refuses the whole batch if it knows the id of one of its
messages. So a batch that appends share is a bet that no guard in it fails and no id in it is known. If it is refused, or its
outcome is not known, each append is sent by itself, as if it had been alone.

A server that syncs before it acknowledges syncs for each message, and for a batch a few times whatever its size. On one node
a batch costs about as much as 15 messages, on three as much as 8, on a server that does not sync more than hundreds: so both are
measured while they are used (`CostEstimate`), and batches are made of the gathered appends when they pay. Several commits of one
aggregate, a row, are one append: they share a batch, or only the first one is stored. Commits that belong together need a batch
in any case, so all appends that wait while one is under way share the next one.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from http import HTTPStatus
from itertools import islice
from time import perf_counter
from typing import TypeVar

import attrs
import msgspec
import structlog

from eventlog.commit import Appended, Proposal, Registry
from eventlog.errors import Conflict, KeyTaken, LogDamaged, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream.api import WRONG_LAST_SEQUENCE, BrokerError, MessageReader
from eventlog.jetstream.connection import REQUEST_TIMEOUT, Connection, Silence
from eventlog.support.chain import FOLLOWS, GUARD, fingerprints, links
from eventlog.support.timers import Backoff

_ROOM_FOR_BATCH_HEADERS = 128


@attrs.define(eq=False)
class Message:
    """A proposal as it goes to the broker, not to be changed. `headers` are lines on the wire: message id, guard, trace context.

    Of two messages with one `unique` (empty: none) the broker stores one; they must not be in one batch.
    """

    subject: str
    expected: int
    id: str
    headers: bytes
    data: bytes
    unique: str = ""
    _digest: str = attrs.field(default="", init=False, repr=False)
    """Empty until it is made: that takes a part of the time in which the broker stores the message."""

    @property
    def size(self) -> int:
        """Bytes of it in a batch."""
        return len(self.headers) + len(self.data) + _ROOM_FOR_BATCH_HEADERS

    @property
    def digest(self) -> str:
        """The digest of the commit as it is stored."""
        if not self._digest:
            _make_digests((self,))
        return self._digest


def digest_soon(messages: Sequence[Message]) -> None:
    """Make the digests of messages in the next turn of the event loop: this one sends them, and the broker needs longer."""
    asyncio.get_running_loop().call_soon(_make_digests, messages)


def _make_digests(messages: Sequence[Message]) -> None:
    """Make the missing digests of messages: of many at once in less time."""
    missing = [message for message in messages if not message._digest]  # noqa: SLF001 - a part of the class
    for message, digest in zip(missing, links(fingerprints(missing)), strict=True):
        message._digest = digest.decode()  # noqa: SLF001 - a part of the class


def encode(
    registry: Registry, proposal: Proposal, max_payload: int, sealed: Sequence[str | None] = (), *, after: Message | None = None
) -> Message:
    """The message of a proposal; `sealed` are the personal fields of its events.

    With `after` it is for a batch, right after that message of its aggregate: then the proposal's own guard has no meaning.
    Raises TooLarge above `max_payload` bytes, ValueError for a value that no header can carry.
    """
    commit, subject = proposal.commit, proposal.aggregate.subject
    unique = commit.id if proposal.key is None else f"key-{sha256(proposal.key.encode()).hexdigest()[:32]}"
    guard = f"{GUARD}: {proposal.expected}" if after is None else f"{FOLLOWS}: previous"
    headers = f"Nats-Msg-Id: {_value(unique)}\r\n{guard}\r\n"
    if (traceparent := commit.traceparent) is not None:
        headers += f"traceparent: {_value(traceparent)}\r\n"
    body = registry.encode(commit, sealed, proposal.prev if after is None else after.digest)
    message = Message(subject, proposal.expected, commit.id, headers.encode(), body, unique)
    if message.size > max_payload:
        raise TooLarge(
            f"a commit of {len(message.data):,} bytes to {subject} is over what one message may have ({max_payload:,} bytes); "
            "put large bodies into the blob store"
        )
    return message


def _value(text: str) -> str:
    if not (text and text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError(f"not fit for a header: {text!r}")
    return text


T = TypeVar("T")

GUARD_IN_FLIGHT = 10164
"""Another message to this aggregate is on its way through the cluster; whether it is ours will show."""
DUPLICATE_IN_FLIGHT = 10158
STORE_FAILED = 10077
NO_RESOURCES = 10023
"""The server's or the account's store is full."""
_TOO_LARGE = {10054, 10097}

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


async def append_until(
    connection: Connection,
    subject: str,
    attempt: Callable[[float], Awaitable[T]],
    end: float,
    *,
    unknown: bool = False,
) -> T:
    """The result of `attempt(seconds left)`, tried until `end` (time of the loop).

    Raises OutcomeUnknown if its message may be stored, and Unavailable if it was surely not; it is not tried again after
    AppendRefused. Any other error is final. `unknown`: a message was sent before without an answer.
    """
    loop = asyncio.get_running_loop()
    backoff, reason = Backoff(0.01, 0.5), Unavailable("no time was left")
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
        await backoff.pause(end - loop.time())
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

    def __init__(self, connection: Connection, reader: MessageReader, check: Check = nothing_to_check) -> None:
        """`check` is awaited before each message is sent, also before it is sent again. It raises if it must not be."""
        self.check = check
        self._connection = connection
        self._reader = reader
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

        async def attempt(remaining: float) -> Appended:
            nonlocal looks, unknown
            await self.check_before(sent=unknown)
            try:
                ack = await self.send(message, min(remaining, REQUEST_TIMEOUT))
                if ack.error is not None and ack.error.err_code != WRONG_LAST_SEQUENCE:
                    raise refusal(ack.error)
            except OutcomeUnknown:
                unknown = True  # from now on a record that cannot be found may be this one, and damaged
                raise
            if ack.error is None and not ack.duplicate:
                return Appended(ack.seq)
            appended = await self._find_or_taken(message, ack, remaining)
            if appended is not None:
                return appended
            looks += 1
            if looks == _LOOKS and not unknown:
                raise Conflict(f"{message.subject} is not at sequence {message.expected}, and never was: {ack.error}")
            raise Unavailable(f"the leader is behind: {ack.error}")

        return await append_until(self._connection, message.subject, attempt, end, unknown=unknown)

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

    async def _find_or_taken(self, message: Message, ack: Ack, remaining: float) -> Appended | None:
        """As `find`; raises KeyTaken where the broker has dropped the message for another commit with its key."""
        if not ack.duplicate:
            return await self.find(message, remaining)
        stored = await self.read_back({"seq": ack.seq}, remaining)
        if stored is None:
            return None
        if stored.id != message.id:
            earlier = await self.find(message, remaining)  # it may be stored for long, its id remembered for another message
            if earlier is not None:
                return earlier
            raise KeyTaken(ack.seq)
        return Appended(ack.seq, replayed=True)

    async def find(self, message: Message, timeout: float) -> Appended | None:  # noqa: ASYNC109 - passed on
        """Where the message is stored, read from the leader; None if nothing follows its guard.

        Raises Conflict where another commit follows it, OutcomeUnknown where the leader does not answer.
        """
        stored = await self.read_back({"next_by_subj": message.subject, "seq": message.expected + 1}, timeout)
        if stored is None:
            return None
        if stored.id != message.id:
            raise Conflict(
                f"another writer was first: {message.subject} continued from sequence {message.expected} "
                f"to {stored.sequence}; load it again and decide again"
            )
        return Appended(stored.sequence, replayed=True)

    async def read_back(self, request: dict[str, object], timeout: float) -> ReadBack | None:  # noqa: ASYNC109 - passed on
        """A message as the leader has it; None if it has none that can be read. Raises OutcomeUnknown without an answer."""
        try:
            found = await self._reader.leader(request, min(timeout, REQUEST_TIMEOUT))
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


MOST_MESSAGES = 1000
"""The server's own limit (`jetstream { limits { batch { max_msgs } } }`)."""
MOST_TOGETHER_BYTES = 32 * 1024**2
"""Bytes of one batch, which are held in memory until it is stored."""

_BATCH_TIMEOUT = 5.0
_DUPLICATE = 10201
_INCOMPLETE = 10176
"""A message of the batch is missing, since the leader changed or the server forgot the batch: no message of it is stored."""
_READ_AT_ONCE = 64


class Batches:
    """Sends batches to a stream, one at a time: the server commits one after the other anyway, and keeps only 50 open."""

    def __init__(self, connection: Connection, appender: Appender) -> None:
        self._connection = connection
        self._appender = appender
        self._turn = asyncio.Lock()
        self._prefix = secrets.token_urlsafe(6)
        self._numbers = itertools.count(1)

    async def append(self, messages: Sequence[Message], end: float, *, sent: bool = False) -> Sequence[Appended]:
        """Store all messages or none, or learn that they are stored, until `end` (time of the loop). No subject twice.

        `sent`: they have been sent before without an answer. Raises as `EventLog.append_together`.
        """
        size = sum(message.size for message in messages)
        if size > MOST_TOGETHER_BYTES:
            limit = f"at most {MOST_TOGETHER_BYTES:,} bytes can be stored together"
            raise TooLarge(f"{len(messages)} commits of {size:,} bytes; {limit}")

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

        async def attempt(remaining: float) -> Sequence[Appended] | T:
            await self._appender.check_before(sent=sent)
            ack = await self.send(sending, remaining)
            if ack.error is None:
                return sequences(ack, len(messages))
            if ack.error.err_code in {WRONG_LAST_SEQUENCE, _DUPLICATE}:
                return await find(messages, ack.error, remaining)
            if ack.error.err_code == _INCOMPLETE:
                raise Unavailable(str(ack.error))
            raise refusal(ack.error)

        return await append_until(self._connection, about, attempt, end, unknown=unknown)

    async def send(self, sending: Callable[[], Sequence[Message]], remaining: float) -> Ack:
        """One try, in turn, within `remaining` seconds; `sending` gives the messages right before they go out.

        Raises OutcomeUnknown, Unavailable (not sent, or no leader).
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + remaining
        try:
            async with asyncio.timeout_at(end):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Unavailable("other batches took all the time") from error
        try:
            messages = sending()
            if not messages:
                raise Unavailable("no message is left to be sent")
            reply = await self._connection.send_batch(self._framed(messages), min(end - loop.time(), _BATCH_TIMEOUT))
        finally:
            self._turn.release()
        return self._appender.decode(reply.data)

    def _framed(self, messages: Sequence[Message]) -> Sequence[tuple[str, bytes, bytes]]:
        batch = f"Nats-Batch-Id: {self._prefix}{next(self._numbers):x}\r\nNats-Batch-Sequence: ".encode()
        framed = [
            (message.subject, b"%b%b%d\r\n" % (message.headers, batch, number), message.data)
            for number, message in enumerate(messages, 1)
        ]
        subject, headers, body = framed[-1]
        framed[-1] = (subject, headers + b"Nats-Batch-Commit: 1\r\n", body)
        return framed

    async def _find(self, messages: Sequence[Message], error: BrokerError, remaining: float) -> Sequence[Appended]:
        """Where the messages are stored, if an earlier try stored them. Raises Conflict, OutcomeUnknown."""
        first = await self._appender.find(messages[0], remaining)
        if first is None:
            # All are stored or none: the last one proves that the first one is stored and cannot be read.
            if await self._appender.find(messages[-1], remaining) is not None:
                raise OutcomeUnknown(
                    f"{messages[-1].subject} is stored, and {messages[0].subject} of the same batch cannot be read"
                )
            raise Conflict(f"another writer was first at one of {len(messages)} aggregates: {error}; load them and decide again")
        seen: list[Appended | None] = [first]
        for start in range(1, len(messages), _READ_AT_ONCE):
            part = messages[start : start + _READ_AT_ONCE]
            seen += await asyncio.gather(*(self._appender.find(message, remaining) for message in part))
        stored = [appended for appended in seen if appended is not None]
        if len(stored) < len(messages):
            raise OutcomeUnknown(f"only {len(stored)} of {len(messages)} commits can be seen yet")
        return stored

    async def _find_row(self, row: Sequence[Message], error: BrokerError, remaining: float) -> Sequence[Appended] | None:
        """Where the commits of a row are stored; None if they cannot be. Raises OutcomeUnknown, Unavailable."""
        first = row[0]
        stored = await self._appender.read_back({"next_by_subj": first.subject, "seq": first.expected + 1}, remaining)
        if stored is None and error.err_code == WRONG_LAST_SEQUENCE:
            raise Unavailable(f"the leader is behind: {error}")
        if stored is None or stored.id not in {message.id for message in row}:
            return None
        places = range(stored.sequence, stored.sequence + len(row))
        stored_row = await asyncio.gather(*(self._appender.read_back({"seq": place}, remaining) for place in places))
        if [None if one is None else one.id for one in stored_row] != [message.id for message in row]:
            raise OutcomeUnknown(f"commits to {first.subject} are stored, and not all of their batch can be read")
        return [Appended(place, replayed=True) for place in places]


def sequences(ack: Ack, count: int) -> Sequence[Appended]:
    """The sequences of a stored batch, which are consecutive. Raises OutcomeUnknown for an acknowledgement of something else."""
    if ack.count != count:
        raise OutcomeUnknown(f"NATS acknowledged {ack.count} messages of {count}")
    first = ack.seq - count + 1
    return [Appended(first + index) for index in range(count)]


log = structlog.get_logger(__name__)

MOST_BYTES = 4 * 1024**2
"""Bytes of a shared batch: beyond it waiting for the others costs more than the sync that is saved."""

_SHARED_TIMEOUT = 2.0
_FIRST_SINGLE, _FIRST_LONE, _FIRST_BATCH = 0.0002, 0.0004, 0.0025
_LEAST_COST, _MOST_COST = 0.00001, 1.0
_STEP, _FORGET, _CLEARLY = 1.05, 0.01, 1.5
_MOST_STEPS = 8
_EACH = 0.00003
"""Seconds that a message in a batch takes: the cost of writing it, on both sides."""
_FEWEST = 4
_RESOLUTION = 0.001
"""Seconds by which the loop's clock may be behind its timers."""
_SAMPLE, _SAMPLE_TIME = 8, 0.005
"""Appends and seconds that the pace is measured over: acknowledgements come in bunches, so a few say nothing."""


@attrs.define
class CostEstimate:
    """The cost of appends on this server, in seconds.

    `single` is the cost of each of many that are sent at once, `lone` the cost of each of several that are sent one after the
    other, `batch` the fixed part of a batch. All follow the median of the measurements, since a stall has no meaning for the next
    append. If all measurements are on one side, they follow soon. The first values belong to a virtual disk that syncs in
    150 µs. A way that is not used for a while returns to them, so that it is tried again.
    """

    single: float = _FIRST_SINGLE
    lone: float = _FIRST_LONE
    batch: float = _FIRST_BATCH
    _run_single: int = 0
    _run_lone: int = 0
    _run_batch: int = 0

    def batch_pays(self, count: int) -> bool:
        """Whether that many appends are stored clearly sooner in one batch."""
        return count >= _FEWEST and count * (self.single - _EACH) > _CLEARLY * self.batch

    def row_pays(self, count: int) -> bool:
        """Whether that many commits of one aggregate are stored clearly sooner in one batch."""
        return count >= _FEWEST and count * (self.lone - _EACH) > _CLEARLY * self.batch

    def saw_singles(self, count: int, seconds: float) -> None:
        """That many appends of several on their way were acknowledged in that time."""
        self.single, self._run_single = _towards(self.single, seconds / count, self._run_single)
        self.batch += (_FIRST_BATCH - self.batch) * _FORGET

    def saw_lone(self, seconds: float) -> None:
        """An append was acknowledged in that time while no other one was on its way."""
        self.lone, self._run_lone = _towards(self.lone, seconds, self._run_lone)
        self.batch += (_FIRST_BATCH - self.batch) * _FORGET

    def saw_batch(self, count: int, seconds: float) -> None:
        """A batch of that many was acknowledged that long after it was sent."""
        self.batch, self._run_batch = _towards(self.batch, seconds - count * _EACH, self._run_batch)
        self.single += (_FIRST_SINGLE - self.single) * _FORGET
        self.lone += (_FIRST_LONE - self.lone) * _FORGET


def _towards(estimate: float, seen: float, run: int) -> tuple[float, int]:
    """An estimate of the median after one more value: a small step in its direction, however far away it is.

    `run` counts the values before it that lay on one side, above (positive) or below: the longer it is, the larger the step.
    """
    above = seen > estimate
    run = max(run, 0) + 1 if above else min(run, 0) - 1
    step = _STEP ** min(abs(run), _MOST_STEPS)
    return (min(estimate * step, _MOST_COST) if above else max(estimate / step, _LEAST_COST)), run


@attrs.define(eq=False)
class _PendingAppend:
    messages: Sequence[Message]
    end: float
    result: asyncio.Future[Sequence[Appended] | None]
    """None: continue alone."""
    together: bool = False
    """Whether all messages are stored or none. Of a row the first one may be stored alone."""
    sent: bool = False


class GroupCommit:
    """Appends of one stream, each on its own or in shared batches, whichever is faster at the moment."""

    def __init__(self, appender: Appender, batches: Batches) -> None:
        self.estimate = CostEstimate()
        self.shared = 0
        """How many appends were stored in shared batches, for metrics."""
        self._appender = appender
        self._batches = batches
        self._queue: list[_PendingAppend] = []
        self._alone = 0
        self._answered = 0
        self._since = 0.0
        self._batch: asyncio.Task[None] | None = None
        self._shared: Sequence[_PendingAppend] = ()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def row_of(self, count: int) -> int:
        """How many of that many commits of one aggregate are to be given to `append` at once."""
        shared = self._batch is not None or self.estimate.row_pays(count) or self.estimate.batch_pays(self._alone + count)
        return min(count, MOST_MESSAGES) if shared else 1

    async def append(self, row: Sequence[Message], end: float) -> Sequence[Appended]:
        """Store a row until `end` (time of the loop): all of it, or its first message.

        Raises as `EventLog.append_in_row`.
        """
        unknown = False
        if self._batch is not None or self._scheduled or self._queue or len(row) > 1 or self.estimate.batch_pays(self._alone + 1):
            waiting = await self._wait(row, end, together=False)
            if (appended := waiting.result.result()) is not None:
                return appended
            unknown = waiting.sent
            if unknown and len(row) > 1 and (found := await self._batches.append_row_again(row, end)) is not None:
                return found
        return [await self._append_alone(row[0], end, unknown=unknown)]

    async def append_together(self, messages: Sequence[Message], end: float) -> Sequence[Appended]:
        """Store all messages or none until `end` (time of the loop). No subject twice. Raises as `EventLog.append_together`."""
        sent = False
        if len(messages) < MOST_MESSAGES and sum(message.size for message in messages) <= MOST_BYTES:
            waiting = await self._wait(messages, end, together=True)
            if (appended := waiting.result.result()) is not None:
                return appended
            sent = waiting.sent
        digest_soon(messages)
        return await self._batches.append(messages, end, sent=sent)

    async def _append_alone(self, message: Message, end: float, *, unknown: bool) -> Appended:
        lone, began = self._alone == 0, perf_counter()
        if self._alone < _FEWEST:
            self._answered, self._since = 0, began
        self._alone += 1
        digest_soon((message,))
        try:
            appended = await self._appender.append(message, end, unknown=unknown)
        finally:
            self._alone -= 1
            if self._queue:
                self._schedule()
        if lone:
            self.estimate.saw_lone(perf_counter() - began)
        self._answered += 1
        if self._answered >= _SAMPLE and (passed := perf_counter() - self._since) >= _SAMPLE_TIME:
            self.estimate.saw_singles(self._answered, passed)
            self._answered, self._since = 0, perf_counter()
        return appended

    async def _wait(self, messages: Sequence[Message], end: float, *, together: bool) -> _PendingAppend:
        pending = _PendingAppend(messages, end, asyncio.get_running_loop().create_future(), together)
        self._queue.append(pending)
        self._schedule()
        self._watch(end)
        await pending.result
        return pending

    def _watch(self, end: float) -> None:
        """One timer for all waiters, which hardly ever expires: the loop's own timers cost more than the waiting."""
        if self._timer is not None:
            if self._timer.when() <= end:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(end, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time() + _RESOLUTION
        for waiting in (*self._shared, *self._queue):
            if waiting.result.done():
                continue
            if waiting.end > now:
                self._watch(waiting.end)
                continue
            reason = Unavailable("it waited for others until its deadline")
            waiting.result.set_exception(given_up(waiting.messages[0].subject, reason, unknown=waiting.sent))

    def _schedule(self) -> None:
        """Decide at the end of this turn of the loop: tasks that wake together append together."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._decide)

    def _decide(self) -> None:
        self._scheduled = False
        if self._batch is not None:
            return
        self._queue = [waiting for waiting in self._queue if not waiting.result.done()]
        taken, left = self._take()
        count = sum(len(waiting.messages) for waiting in taken)
        if self.estimate.batch_pays(count) or any(map(self._needs_batch, taken)):
            self._queue, self._shared = left, taken
            self._batch = asyncio.create_task(self._share(taken))
        elif self._alone == 0 or not self.estimate.batch_pays(self._alone + count):
            released, self._queue = self._queue, []
            for waiting in released:
                waiting.result.set_result(None)

    def _needs_batch(self, pending: _PendingAppend) -> bool:
        count = len(pending.messages)
        return pending.together or (count > 1 and self.estimate.row_pays(count))

    def _take(self) -> tuple[Sequence[_PendingAppend], list[_PendingAppend]]:
        """The next appends, within the limits of a batch, and the remaining ones.

        Each aggregate comes once: the guard of a second append to it would fail the batch for all. So does each unique key.
        """
        taken, remaining = list[_PendingAppend](), list[_PendingAppend]()
        size, count, once = 0, 0, set[str]()
        for pending in self._queue:
            messages = pending.messages
            more = sum(message.size for message in messages)
            own = [name for message in messages for name in (message.subject, message.unique) if name]
            if not once.isdisjoint(own) or count + len(messages) > MOST_MESSAGES or (taken and size + more > MOST_BYTES):
                remaining.append(pending)
            else:
                taken.append(pending)
                once.update(own)
                size, count = size + more, count + len(messages)
        return taken, remaining

    async def _share(self, taken: Sequence[_PendingAppend]) -> None:
        appended: Sequence[Sequence[Appended] | None] = [None] * len(taken)
        try:
            appended = await self._try(taken)
        except OutcomeUnknown as error:
            log.info("shared batch without an answer", appends=len(taken), reason=str(error))
        except (Unavailable, LogDamaged) as error:
            log.debug("shared batch refused", appends=len(taken), reason=str(error))
            for waiting in taken:
                waiting.sent = False
        finally:
            self._batch, self._shared = None, ()
            for waiting, result in zip(taken, appended, strict=True):
                if not waiting.result.done():
                    waiting.result.set_result(result)
            self._schedule()  # after them, so that what they append next is in the next batch

    async def _try(self, taken: Sequence[_PendingAppend]) -> Sequence[Sequence[Appended] | None]:
        """Raises OutcomeUnknown; Unavailable or LogDamaged if no message of it was stored."""
        began, sent = perf_counter(), list[Message]()
        await self._appender.check()

        def sending() -> Sequence[Message]:
            nonlocal began
            began = perf_counter()
            for waiting in taken:
                if not waiting.result.done():  # its caller may have an error by now, or be gone
                    waiting.sent = True
                    sent.extend(waiting.messages)
            digest_soon(sent)
            return sent

        ack = await self._batches.send(sending, _SHARED_TIMEOUT)
        if ack.error is not None:
            error = refusal(ack.error)
            raise error if isinstance(error, OutcomeUnknown) else Unavailable(str(ack.error))
        appended = iter(sequences(ack, len(sent)))
        if len(taken) > 1 or not taken[0].together:
            self.shared += len(sent)
        self.estimate.saw_batch(len(sent), perf_counter() - began)
        self._answered, self._since = 0, perf_counter()
        return [list(islice(appended, len(waiting.messages))) if waiting.sent else None for waiting in taken]
