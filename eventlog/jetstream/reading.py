"""Reading a log: single commits, and all from any sequence on, in order, without a hole, whatever happens to the broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import attrs
import msgspec
import nats.errors
import structlog
from nats.aio.subscription import Subscription

from eventlog.commit import AggregateId, Commit, RecordedEvent, Registry
from eventlog.errors import AggregateDamaged, IncarnationChanged, LogDiverged, OutcomeUnknown, SequenceGap, Unavailable
from eventlog.jetstream.api import (
    PLAIN_ACK_TOKENS,
    PREFIX,
    MessageReader,
    Refused,
    StoredMessage,
    ask,
    incarnation_of,
    persist,
    subjects_of,
)
from eventlog.jetstream.client import NO_HEADERS, frame
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.fence import Fence, StillLog
from eventlog.port import Head
from eventlog.privacy import PersonalDataCipher, revealed
from eventlog.support.chain import digest_of
from eventlog.support.timers import Backoff, until_tick

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
HEARTBEAT = 2.0
"""Seconds without a message after which the server sends a heartbeat for each request."""
SILENCE = 4.5
"""Seconds without a message or a heartbeat after which a consumer is taken for gone."""

GATHER, MANY = 0.002, 100
"""Seconds that commits wait for more if at least that many are still to come, so that a replay comes in big lists."""

REQUEST_LIFE = 30.0
"""Seconds until a request for messages expires, at least. Then the next one is sent. The server wants two heartbeats in it."""
CONSUMER_LIFE = 60.0
"""Seconds after which the server removes the consumer of a reader that is gone."""

LEAST_REQUEST = 100
LEAST_BYTES = 4 * 1024**2
"""Bytes that one request may be answered with, or two messages of the greatest size; some three requests are out at a time."""

_ACK = b"$JS.ACK."
_GOES_ON = frozenset({"Request Timeout", "Batch Completed", "Message Size Exceeds MaxBytes", "No Messages"})


class ConsumerLost(Exception):
    """The consumer is gone, or does not answer, or messages of it are missing: it has to be recreated."""


class Hole(Exception):
    """The server left a sequence out."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"sequence {found} came where {expected} was expected")
        self.expected = expected
        self.found = found


class Pull:
    """A consumer of the commits above sequence `after`: `async with Pull(...) as pull: commits = await pull.read()`.

    With `subject` only the commits on that subject, else all of them without a hole. `batch` is the most that `read` gives.
    """

    def __init__(
        self, connection: Connection, stream: str, registry: Registry, *, after: int, subject: str | None, batch: int
    ) -> None:
        self._connection = connection
        self._client = connection.client
        self._stream = stream
        self._registry = registry
        self._subject = subject
        self._batch = batch
        self._name = f"reader-{uuid4().hex}"
        self._inbox = self._client.new_inbox()
        self._subscription: Subscription | None = None
        self._request_size = max(batch, LEAST_REQUEST)
        self._request_bytes = max(LEAST_BYTES, 2 * self._client.max_payload)
        self.total = 0
        """How many commits there were to be read when the consumer was made."""

        self._next = after + 1
        self._delivered = self._delivered_at_request = 0
        self._credit = 0
        self._unread: list[Commit] = []
        self._wake = asyncio.Event()
        self._pending = 0
        self._waking: asyncio.Handle | None = None
        self._broken: ConsumerLost | Hole | None = None
        self._signs = self._signs_seen = 0
        self._watch: asyncio.TimerHandle | None = None
        self._silent = False
        self._doubts = 0

    async def __aenter__(self) -> Self:
        """Make the consumer. Raises Unavailable, Refused."""
        self._client.on_loss.add(self._lose)
        self._watch_on()
        try:
            self._subscription = await self._client.tap(f"{self._inbox}.*", self._take)
            config = {
                "name": self._name,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._next,
                "ack_policy": "none",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(CONSUMER_LIFE * _SECOND),
            }
            if self._subject is not None:
                config["filter_subject"] = self._subject
            body: dict[str, Any] = {"stream_name": self._stream, "config": config, "action": "create"}
            answer = await ask(self._connection, f"CONSUMER.CREATE.{self._stream}.{self._name}", body)
        except BaseException as error:
            await self._end()
            if isinstance(error, nats.errors.Error):
                raise Unavailable(f"cannot read the stream {self._stream}: {error!r}") from error
            raise
        self.total = self._pending = answer["num_pending"]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Remove the consumer; if the server cannot be reached, it does so itself after CONSUMER_LIFE."""
        await self._end()

    async def read(self, patience: float | None = None) -> list[Commit]:
        """The next commits: the present ones, at once; an empty list after `patience` seconds without any.

        Raises ConsumerLost and Hole, when all commits before it are read.
        """
        loop = asyncio.get_running_loop()
        end = None if patience is None else loop.time() + patience
        while True:
            if self._unread and self._wake.is_set():
                return self._read()
            if self._broken is not None:
                if not self._unread:
                    raise self._broken
                return self._read()
            if self._silent:
                await self._check()
                continue
            self._wake.clear()
            await self._ask()
            if not await self._woken(end):
                return []

    def _read(self) -> list[Commit]:
        if len(self._unread) <= self._batch:
            commits, self._unread = self._unread, []
        else:
            commits, self._unread = self._unread[: self._batch], self._unread[self._batch :]
        self._stop_waking()
        if len(self._unread) < self._batch:
            self._wake.clear()
            if self._unread:
                self._wake_soon()
        return commits

    @property
    def _enough(self) -> int:
        """Messages that may be on their way or unread at a new request. Each open request costs heartbeats, so few are open."""
        return 2 * self._request_size if self._pending > self._credit else self._request_size // 2

    async def _ask(self) -> None:
        while self._credit + len(self._unread) <= self._enough:
            request = {
                "batch": self._request_size,
                "max_bytes": self._request_bytes,
                "expires": int((REQUEST_LIFE + until_tick(HEARTBEAT)) * _SECOND),  # the next one begins at a tick of heartbeats
                "idle_heartbeat": int(HEARTBEAT * _SECOND),
            }
            subject = f"{PREFIX}CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
            self._credit += self._request_size
            self._delivered_at_request = self._delivered
            try:
                await self._client.write([frame(subject, f"{self._inbox}.1", NO_HEADERS, msgspec.json.encode(request))])
            except ConnectionResetError as error:
                raise ConsumerLost(str(error)) from error

    async def _woken(self, end: float | None) -> bool:
        try:
            async with asyncio.timeout_at(end):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    async def _check(self) -> None:
        """Nothing came for a moment: is there still anything to come? Raises ConsumerLost."""
        try:
            await self._connection.ping()  # what the server sent before its answer has been taken when this returns
        except Unavailable as error:
            raise ConsumerLost(str(error)) from error
        if self._signs == self._signs_seen:
            raise ConsumerLost("no heartbeat came")
        self._watch_on()

    def _watch_on(self) -> None:
        """See, in SILENCE seconds, whether there was a sign of the consumer since now."""
        if self._watch is not None:
            self._watch.cancel()
        self._silent, self._signs_seen = False, self._signs
        self._watch = asyncio.get_running_loop().call_later(SILENCE, self._look)

    def _look(self) -> None:
        if self._signs != self._signs_seen:
            self._watch_on()
        else:
            self._silent = True
            self._wake.set()

    def _take(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self._signs += 1
        if not reply.startswith(_ACK):
            self._take_status(headers or b"")
            return
        if self._broken is not None:
            return
        # $JS.ACK.(domain.account.)?stream.consumer.times.SEQUENCE.DELIVERY.time.PENDING(.random)? - ADR-15
        tokens = reply.split(b".")
        at = 5 if len(tokens) == PLAIN_ACK_TOKENS else 7
        sequence, delivery = int(tokens[at]), int(tokens[at + 1])
        self._credit -= 1
        if delivery != self._delivered + 1:
            self._break(ConsumerLost(f"delivery {delivery} came after {self._delivered}"))
            return
        if sequence != self._next and self._subject is None:
            self._break(Hole(self._next, sequence))
            return
        self._delivered, self._next = delivery, sequence + 1
        self._unread.append(Commit(sequence, subject.decode(), data, self._registry, headers))
        self._pending = int(tokens[at + 3])
        if not self._pending or len(self._unread) >= self._batch:
            self._wake.set()
        elif self._waking is None:
            self._wake_soon()

    def _take_status(self, headers: bytes) -> None:
        first, *lines = headers.decode(errors="replace").split("\r\n")
        code, _, description = first.partition(" ")[2].partition(" ")
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if code == "100":
            self._watch_on()
            behind = int(fields.get("Nats-Last-Consumer", 0)) > self._delivered
            self._doubts = self._doubts + 1 if behind else 0
            if self._doubts > 1:
                self._break(ConsumerLost("messages were lost on their way"))
        elif description in _GOES_ON:
            self._credit = max(0, self._credit - int(fields.get("Nats-Pending-Messages", 0)))
            if description == "Message Size Exceeds MaxBytes" and self._delivered == self._delivered_at_request:
                self._request_bytes *= 2  # a single message is larger
            self._wake.set()
        else:
            self._break(ConsumerLost(f"{code} {description}".strip()))

    def _lose(self) -> None:
        self._break(ConsumerLost("the connection was lost"))

    def _break(self, error: ConsumerLost | Hole) -> None:
        self._broken = self._broken or error
        self._wake.set()

    def _wake_soon(self) -> None:
        """Wake the reader when everything has been taken that the connection has received by now, in a replay a little later."""
        loop = asyncio.get_running_loop()
        self._waking = loop.call_soon(self._wake.set) if self._pending < MANY else loop.call_later(GATHER, self._wake.set)

    def _stop_waking(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None

    async def _end(self) -> None:
        self._client.on_loss.discard(self._lose)
        if self._watch is not None:
            self._watch.cancel()
        self._stop_waking()
        self._broken = self._broken or ConsumerLost("closed")
        self._unread = []
        with contextlib.suppress(nats.errors.Error, OSError):  # of a connection that is gone there is nothing to end
            if self._subscription is not None:
                await self._client.untap(self._subscription)
            if self._client.takes_frames:
                subject = f"{PREFIX}CONSUMER.DELETE.{self._stream}.{self._name}"
                await self._client.write([frame(subject, "", NO_HEADERS, b"")])


_LONGEST_PAUSE = 0.5
_MOMENT = 0.25
"""Seconds without a commit of an aggregate after which is looked whether the stream has passed the end of the reading."""
_SILENT = 1.0
"""Seconds without a commit after which is looked whether the next one can be read at all."""


@attrs.define(eq=False)
class Follower:
    """Follows a stream as `eventlog.port.EventLog.follow` promises it, over any number of consumers. `last` is as far as it came.

    `incarnation` is the one that the sequence to begin after was true for; without it the one that the stream has at the first
    look. `proof` is the digest of the commit there. Each consumer begins with the commit that was read last, which has to be the
    same one: commit ids are unique and a log grows at its end only, so that finds every log that was cut and has grown again.
    """

    _connection: Connection
    _stream: str
    _registry: Registry
    last: int = attrs.field(alias="after", kw_only=True)
    _until: int | None = attrs.field(default=None, kw_only=True)
    _aggregate: AggregateId | None = attrs.field(default=None, kw_only=True)
    _batch: int = attrs.field(default=1000, kw_only=True)
    _incarnation: str | None = attrs.field(default=None, kw_only=True)
    _proof: str | None = attrs.field(default=None, kw_only=True)
    _reader: MessageReader = attrs.field(init=False)
    _read_last: Commit | None = attrs.field(default=None, init=False)
    _overlaps: bool = attrs.field(default=False, init=False)
    _end: int = attrs.field(default=0, init=False)
    _still: StillLog = attrs.field(factory=StillLog, init=False)
    _hole: Hole | None = attrs.field(default=None, init=False)
    _done: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reader = MessageReader(self._connection, self._stream)
        self._done = self._until is not None and self._until <= self.last

    async def lists(self) -> AsyncIterator[Sequence[Commit]]:
        """The commits. A stream that is not there is waited for, like a broker that is not.

        Close the generator (`aclose`, or `contextlib.aclosing`) to be rid of the consumer at once.
        """
        backoff = Backoff(0.05, _LONGEST_PAUSE)
        while not self._done:
            try:
                async with await self._open() as pull:
                    async for commits in self._read(pull):
                        backoff.begin()
                        yield commits
            except Hole as error:
                log.warning(
                    "a sequence is missing, looking again", stream=self._stream, expected=error.expected, found=error.found
                )
                self._hole = error
            except (ConsumerLost, Unavailable, Refused) as error:
                if isinstance(error, Refused) and not error.passing:
                    raise
                report = log.info if backoff.is_first else log.debug
                report("reading interrupted", stream=self._stream, after=self.last, reason=str(error))
                await backoff.pause()
                with contextlib.suppress(Unavailable):
                    await self._connection.up(_LONGEST_PAUSE)

    async def _open(self) -> Pull:
        """A consumer, not yet made, from the last commit on; of a stream that still is what was read before.

        Raises LogDamaged if it is not, Unavailable.
        """
        info = await self._reader.info()
        found = incarnation_of(info)
        if self._incarnation is None:
            self._incarnation = found
        if found != self._incarnation:
            raise IncarnationChanged(self._incarnation, found)
        self._end = info["state"]["last_seq"]
        await self._check_hole()
        if self._aggregate is None:
            self._still.check(info, self._problem(info))
            there = info["state"]["messages"] and info["state"]["first_seq"] <= self.last
            self._overlaps = bool(there and self._known() is not None)
        subject = self._aggregate.subject if self._aggregate else None
        after = self.last - self._overlaps
        return Pull(self._connection, self._stream, self._registry, after=after, subject=subject, batch=self._batch)

    def _known(self) -> str | None:
        """The digest of the commit that was read last; None if it is not known."""
        return self._proof if self._read_last is None else self._read_last.digest

    async def _read(self, pull: Pull) -> AsyncIterator[Sequence[Commit]]:
        """The commits of a consumer, up to `until`; ends but is not `done` if another consumer has to find the rest."""
        if self._aggregate is not None and self._until is not None:
            async for commits in self._read_some(pull, self._aggregate, self._until):
                yield commits
            return
        while not self._done:
            commits = await pull.read(patience=_SILENT if self._expects else None)
            if not commits:
                await self._check_silence()
                continue
            if self._overlaps:
                self._overlaps = False
                if commits[0].digest != self._known():
                    raise LogDiverged(self.last)
                del commits[0]
                if not commits:
                    continue
            if self._until is not None and commits[-1].sequence >= self._until:
                del commits[len(commits) - (commits[-1].sequence - self._until) :]
                self._done = True
            self._read_last = commits[-1]
            self.last = commits[-1].sequence
            yield commits

    @property
    def _next_sequence(self) -> int:
        """The sequence of the next commit that the consumer has to give."""
        return self.last + 1 - self._overlaps

    @property
    def _expects(self) -> bool:
        """Whether a commit is to come that the stream had at the last look, or up to which it is read.

        That is not known of one aggregate: the next commit of the stream may be of another one.
        """
        return self._aggregate is None and (self._end >= self._next_sequence or self._until is not None)

    async def _check_silence(self) -> None:
        """Nothing came for a moment: see whether the leader has the next commit, and cannot read it, or has lost its end.

        A consumer leaves out a commit that cannot be read, and begins in vain behind the end. Raises SequenceGap, LogDamaged.
        """
        sequence = self._next_sequence
        if self._until is not None and self._end < sequence:
            self._end = (await self._reader.info())["state"]["last_seq"]
        if self._end < sequence:
            return
        stored = await self._reader.certainly({"seq": sequence})
        if stored is None:
            info = await self._reader.info()
            self._still.check(info, self._problem(info))
            if info["state"]["last_seq"] >= sequence:
                raise SequenceGap(sequence, None)
        elif self._overlaps and digest_of(stored.subject, stored.data) != self._known():
            raise LogDiverged(self.last)  # the consumer begins with this commit: the delivery was lost

    async def _read_some(self, pull: Pull, aggregate: AggregateId, until: int) -> AsyncIterator[Sequence[Commit]]:
        """One aggregate's commits up to `until`.

        The server that has the consumer may be behind, and leaves out what it cannot read. So the leader is asked whether one is
        left, when the stream has passed `until`. Raises Hole, AggregateDamaged.
        """
        remaining, passed = pull.total, self._end >= until
        while not self._done:
            commits = await pull.read(patience=_MOMENT) if remaining > 0 or not passed else []
            passed = passed or (not commits and (await self._reader.info())["state"]["last_seq"] >= until)
            if not commits and passed:
                following = await self._next_of(aggregate)
                if following is None and remaining > 0:
                    raise AggregateDamaged(aggregate.subject, 0, "the server counts messages of it, and cannot read the last one")
                self._done = following is None or following > until
                remaining = max(remaining, 1)
                continue
            remaining -= len(commits)
            joined, hole = self._joined([commit for commit in commits if commit.sequence <= until])
            if joined:
                self.last = joined[-1].sequence
                yield joined
            if hole is not None:
                raise hole
            self._done = len(joined) < len(commits)

    def _joined(self, commits: Sequence[Commit]) -> tuple[Sequence[Commit], Hole | None]:
        """The first commits of an aggregate, each with a guard that names the one before it; and the hole behind them."""
        last = self.last
        for index, commit in enumerate(commits):
            if (guard := commit.guard or 0) > last:
                return commits[:index], Hole(guard, commit.sequence)
            last = commit.sequence
        return commits, None

    async def _next_of(self, aggregate: AggregateId) -> int | None:
        """The sequence of the next commit of an aggregate that the leader can read."""
        request = {"next_by_subj": aggregate.subject, "seq": self.last + 1}
        found = await self._reader.certainly(request)
        return None if found is None else found.sequence

    def _problem(self, info: dict[str, Any]) -> str | None:
        """Why reading cannot continue between the ends of the stream; None if it can."""
        state = info["state"]
        end = state["last_seq"]
        first = state["first_seq"] if state["messages"] else end + 1
        if self.last < first - 1:
            return f"{self._stream} begins at sequence {first}, reading had to continue after {self.last}"
        if 0 < self.last < first and self._known() is not None:
            return f"{self._stream} begins at sequence {first}, and sequence {self.last} was read from it before"
        if self.last > end:
            return f"{self._stream} ends at sequence {end}, reading had to continue after {self.last}"
        return None

    async def _check_hole(self) -> None:
        """Whether what a consumer left out is missing from the stream too, by the word of its leader. Raises SequenceGap."""
        if self._hole is None:
            return
        if await self._reader.certainly({"seq": self._hole.expected}) is None:
            raise SequenceGap(self._hole.expected, self._hole.found)
        self._hole = None


T = TypeVar("T")

READ_DEADLINE = 2.0
"""Seconds within which a read is answered or refused: a broker that restarts is back by then."""

_HISTORY_AT_ONCE = 256
_LAST_AT_ONCE = 256


class LogReader:
    """The reads of one stream, each noted by the fence of its appends. `people` opens personal fields."""

    def __init__(self, connection: Connection, stream: str, registry: Registry, people: PersonalDataCipher | None) -> None:
        self.connection = connection
        """The connection that it works over."""
        self._stream = stream
        self.registry = registry
        """The types of the events and states in it."""
        self._people = people
        self._reader = MessageReader(connection, stream)
        self._fence = Fence(connection, stream, self._reader)

    async def last(self, aggregate: AggregateId, *, up_to: int | None = None, consistent: bool = False) -> Commit | None:
        """See `eventlog.port.EventLog.last`."""
        subject = aggregate.subject
        stored: StoredMessage | None = None
        if up_to is not None:
            stored = await self._persist(lambda: self._last_up_to(subject, up_to))
        elif not consistent:
            stored = await self._persist(lambda: self._reader.last(subject))
        if stored is None and up_to is None:
            stored = await self._persist(lambda: self._last_or_absent(subject))
        return self._commit(stored)

    async def _last_or_absent(self, subject: str) -> StoredMessage | None:
        """The leader's last message on a subject; None if there surely is none.

        A message that the server cannot read it answers with "no message found", and it still counts it. After it has cut a file
        it counts fewer messages than there are sequences, and the aggregates of the missing ones are unknown.
        """
        if (stored := await self._reader.leader({"last_by_subj": subject})) is not None:
            return stored
        info = await self._info({"subjects_filter": subject})
        self._fence.check_seen()
        state = info["state"]
        counted = bool((state.get("subjects") or {}).get(subject))
        missing = state["last_seq"] - state["messages"]  # a log keeps every record
        if not counted and missing <= 0:
            return None
        if (stored := await self._reader.leader({"last_by_subj": subject})) is not None:  # it came in between
            return stored
        if counted:
            raise AggregateDamaged(subject, 0, "the server counts messages of it, and cannot read the last one")
        raise AggregateDamaged(subject, 0, f"{missing} records of {self._stream} are missing, which may be its records")

    async def _last_up_to(self, subject: str, up_to: int) -> StoredMessage | None:
        """The last message on a subject up to a sequence. The replica that gives it may be behind: the leader has the rest."""
        if up_to > 0 and (stored := await self._reader.direct({"multi_last": [subject], "up_to_seq": up_to})) is not None:
            while stored.sequence < up_to:
                newer = await self._reader.leader({"next_by_subj": subject, "seq": stored.sequence + 1})
                if newer is None or newer.sequence > up_to:
                    break
                stored = newer
            return stored
        newest = await self._last_or_absent(subject)
        if newest is None or newest.sequence <= up_to:
            return newest
        oldest = await self._reader.leader({"next_by_subj": subject, "seq": 1})
        if oldest is None or oldest.sequence > up_to:
            return None
        raise Unavailable(f"no replica of {self._stream} has given {subject} as it was at sequence {up_to}: it may be behind")

    async def at(self, sequence: int) -> Commit | None:
        """See `eventlog.port.EventLog.at`."""
        if sequence < 1:
            return None
        request = {"seq": sequence}
        found = await self._persist(lambda: self._reader.direct(request))
        return self._commit(found or await self._persist(lambda: self._reader.leader(request)))

    async def decrypt(self, commit: Commit) -> Sequence[RecordedEvent]:
        """See `eventlog.port.EventLog.decrypt`."""
        return await revealed(commit, self.registry, self._people)

    async def history(self, aggregate: AggregateId, *, after: int = 0) -> AsyncIterator[Commit]:
        """See `eventlog.port.EventLog.history`. Raises Unavailable."""
        newest = await self.last(aggregate, consistent=True)
        while newest is not None and after < newest.sequence:
            request = {"batch": _HISTORY_AT_ONCE, "next_by_subj": aggregate.subject, "seq": after + 1}
            for stored in await self._persist(partial(self._some, request)):
                if stored.sequence > newest.sequence:
                    return
                after = stored.sequence
                yield stored.commit(self.registry)

    async def _some(self, request: dict[str, Any]) -> Sequence[StoredMessage]:
        """Messages that are known to be there."""
        found = await self._reader.several(request)
        if not found:
            raise Unavailable(f"a replica of {self._stream} is behind")
        return found

    async def ids(self, category: str) -> Sequence[str]:
        """Return the ids of the aggregates of a category, as the leader counts them. Raises Unavailable."""
        subjects = await self._persist(lambda: subjects_of(self.connection, self._stream, f"{category}.*"))
        return sorted(subject.rpartition(".")[2] for subject in subjects)

    async def last_of_all(self, category: str) -> AsyncIterator[Sequence[Commit]]:
        """The last commit of each aggregate of a category, in lists. A commit may be a moment old on a cluster, as in `last`.

        Raises Unavailable, also if a commit cannot be read: none is left out.
        """
        ids = await self.ids(category)
        for begin in range(0, len(ids), _LAST_AT_ONCE):
            subjects = [f"{category}.{id_}" for id_ in ids[begin : begin + _LAST_AT_ONCE]]
            request = {"multi_last": subjects, "batch": len(subjects)}
            found = await self._persist(partial(self._reader.several, request))
            if len(found) < len(subjects):
                missing = set(subjects) - {stored.subject for stored in found}
                raise Unavailable(f"the last commit of {min(missing)} cannot be read")
            yield [stored.commit(self.registry) for stored in found]

    def _commit(self, stored: StoredMessage | None) -> Commit | None:
        if stored is None:
            return None
        commit = stored.commit(self.registry)
        self._fence.read(commit)
        return commit

    async def follow(
        self,
        *,
        after: int,
        until: int | None = None,
        aggregate: AggregateId | None = None,
        batch: int = 1000,
        incarnation: str | None = None,
        proof: str | None = None,
    ) -> AsyncIterator[Sequence[Commit]]:
        """See `eventlog.port.EventLog.follow`."""
        follower = Follower(
            self.connection,
            self._stream,
            self.registry,
            after=after,
            until=until,
            aggregate=aggregate,
            batch=batch,
            incarnation=incarnation,
            proof=proof,
        )
        lists: Any = follower.lists()
        async with aclosing(lists):
            async for commits in lists:
                self._fence.read(commits[-1])
                yield commits

    async def head(self) -> Head:
        """See `eventlog.port.EventLog.head`."""
        info = await self._persist(self._info)
        state = info["state"]
        first = state["first_seq"] if state["messages"] else state["last_seq"] + 1
        return Head(incarnation_of(info), first, state["last_seq"])

    async def _info(self, request: dict[str, Any] | None = None) -> dict[str, Any]:
        """The leader's information on the stream: once, and noted by the fence. Raises Unavailable."""
        info = await self._reader.info(request, timeout=READ_DEADLINE)
        self._fence.saw(info)
        return info

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of a read, tried for a moment: a repeated read does no harm."""
        try:
            return await persist(self.connection, attempt, READ_DEADLINE)
        except OutcomeUnknown as error:
            raise Unavailable(f"the stream {self._stream} cannot be read: {error}") from error
