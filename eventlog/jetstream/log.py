"""The event log on JetStream: the product's implementation of `eventlog.port.EventLog`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import msgspec

from eventlog.admin.reconcile import incarnation_of
from eventlog.broker.write_health import WriteHealth
from eventlog.commit import AggregateId, Appended, Commit, Proposal, RecordedEvent
from eventlog.errors import AggregateDamaged, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream import follower as reader
from eventlog.jetstream.api import subjects_of
from eventlog.jetstream.append import Appender, Message, encode
from eventlog.jetstream.batch import MOST_MESSAGES, Batches
from eventlog.jetstream.fence import Fence
from eventlog.jetstream.group_commit import MOST_BYTES, GroupCommit
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.port import DEADLINE, Head
from eventlog.privacy.encryption import PersonalDataCipher, revealed
from eventlog.registry import Registry
from eventlog.support import spans
from eventlog.support.histogram import Timings
from eventlog.support.trace import Trace

T = TypeVar("T")

READ_DEADLINE = 2.0
"""Seconds within which a read is answered or refused: a broker that restarts is back by then."""

_PAUSE = 0.02
_HISTORY_AT_ONCE = 256
_LAST_AT_ONCE = 256


class JetStreamLog:
    """One stream of a NATS server or cluster.

    It owns nothing and needs no end: the connection outlives it. Only appends through the same object share batches. `people`
    seals and opens personal fields: it is needed where such are written.
    """

    def __init__(
        self, connection: Connection, stream: str, registry: Registry, *, people: PersonalDataCipher | None = None
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._registry = registry
        self._people = people
        self._reads = MessageReader(connection, stream)
        self._fence = Fence(connection, stream, self._reads)
        self._appends = Appender(connection, self._reads, self._fence.check)
        self._batches = Batches(connection, self._appends)
        self.group = GroupCommit(self._appends, self._batches)
        """Figures of group commit, for metrics."""
        self.timings = Timings()
        """How long it took until the broker had stored what was appended, for metrics."""
        self.failed = 0
        """How many appends ended with an error, for metrics."""
        self.writes = WriteHealth()
        """Whether it takes appends."""

    @property
    def registry(self) -> Registry:
        """The types of the events and states in it."""
        return self._registry

    @property
    def connection(self) -> Connection:
        """The connection that it works over."""
        return self._connection

    # Writing

    async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        """See `eventlog.port.EventLog.append`."""
        (appended,) = await self._store([proposal], self._encode_row, self.group.append, deadline)
        return appended

    async def append_in_row(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """See `eventlog.port.EventLog.append_in_row`. Raises ValueError for no proposals, or for several aggregates."""
        if len({proposal.aggregate for proposal in proposals}) != 1:
            raise ValueError("a row has commits of one aggregate")
        some = proposals[: self.group.row_of(len(proposals))]
        return await self._store(some, self._encode_row, self.group.append, deadline)

    async def append_together(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """See `eventlog.port.EventLog.append_together`. Raises ValueError for too many proposals or an aggregate twice."""
        if len({proposal.aggregate for proposal in proposals}) < len(proposals):
            raise ValueError("an aggregate may be in a batch once only")
        if len(proposals) > MOST_MESSAGES:
            raise ValueError(f"at most {MOST_MESSAGES} commits can be stored together, not {len(proposals)}")
        if len(proposals) <= 1:
            return [await self.append(proposal, deadline=deadline) for proposal in proposals]
        return await self._store(proposals, self._encode_all, self.group.append_together, deadline)

    async def _store(
        self,
        proposals: Sequence[Proposal],
        encoded: Callable[[Sequence[Proposal]], Awaitable[Sequence[Message]]],
        append: Callable[[Sequence[Message], float], Awaitable[Sequence[Appended]]],
        deadline: float,
    ) -> Sequence[Appended]:
        """Store the messages that `encoded` makes of the proposals by `append`, which may store the first ones only."""
        end = asyncio.get_running_loop().time() + deadline
        started = perf_counter()
        try:
            await self._fence.check()
            messages, before = await encoded(proposals), self._fence.acknowledged
            self.writes.check()
            with self.writes.appending(sum(message.size for message in messages)):
                stored = await append(messages, end)
            appended = [Appended(one.sequence, one.replayed, sent.digest) for one, sent in zip(stored, messages, strict=False)]
            for one in appended:
                self._fence.stored(one, before)
        except Exception:
            self.failed += 1
            raise
        seconds = perf_counter() - started
        self.timings.observe(seconds)
        if spans.recording():
            self._export(proposals[: len(appended)], time.time_ns() - int(seconds * 1e9))
        return appended

    async def _encode(self, proposal: Proposal, after: Message | None = None) -> Message:
        sealed = () if self._people is None else await self._people.encrypt(proposal, self._registry)
        return encode(self._registry, proposal, self._connection.max_payload, sealed, after=after)

    async def _encode_all(self, proposals: Sequence[Proposal]) -> Sequence[Message]:
        return [await self._encode(proposal) for proposal in proposals]

    async def _encode_row(self, proposals: Sequence[Proposal]) -> Sequence[Message]:
        """The messages of the first proposal and of those after it that fit a shared batch. Raises the errors of the first."""
        row = [await self._encode(proposals[0])]
        size = row[0].size
        for proposal in proposals[1:]:
            try:
                message = await self._encode(proposal, row[-1])
            except (TooLarge, ValueError):
                break  # its own error, when it is the first one
            size += message.size
            if size > MOST_BYTES:
                break
            row.append(message)
        return row

    def _export(self, proposals: Sequence[Proposal], began: int) -> None:
        """Export a span for each stored commit, in the span of its command."""
        for proposal in proposals:
            if (parent := Trace.parse(proposal.commit.traceparent)) is not None:
                name = f"{spans.SEND} {self._stream}"
                about = spans.message(spans.SEND, self._stream, message_id=proposal.commit.id)
                spans.record(name, parent.child(), spans.SpanKind.PRODUCER, began, parent=parent, attributes=about)

    # Reading

    async def last(self, aggregate: AggregateId, *, up_to: int | None = None, consistent: bool = False) -> Commit | None:
        """See `eventlog.port.EventLog.last`."""
        subject = aggregate.subject
        found: StoredMessage | None = None
        if up_to is not None:
            found = await self._persist(lambda: self._last_up_to(subject, up_to))
        elif not consistent:
            found = await self._persist(lambda: self._reads.last(subject))
        if found is None and up_to is None:
            found = await self._persist(lambda: self._last_or_absent(subject))
        return self._commit(found)

    async def _last_or_absent(self, subject: str) -> StoredMessage | None:
        """The leader's last message on a subject; None if there surely is none.

        A message that the server cannot read it answers with "no message found", and it still counts it. After it has cut a file
        it counts fewer messages than there are sequences, and the aggregates of the missing ones are unknown.
        """
        if (found := await self._reads.leader({"last_by_subj": subject})) is not None:
            return found
        info = await self._info({"subjects_filter": subject})
        self._fence.check_seen()
        state = info["state"]
        counted = bool((state.get("subjects") or {}).get(subject))
        missing = state["last_seq"] - state["messages"]  # a log keeps every record
        if not counted and missing <= 0:
            return None
        if (found := await self._reads.leader({"last_by_subj": subject})) is not None:  # it came in between
            return found
        if counted:
            raise AggregateDamaged(subject, 0, "the server counts messages of it, and cannot read the last one")
        raise AggregateDamaged(subject, 0, f"{missing} records of {self._stream} are missing, which may be its records")

    async def _last_up_to(self, subject: str, up_to: int) -> StoredMessage | None:
        # No result also means that the replica which answers, or the stream itself, has not come to `up_to`.
        if up_to > 0 and (found := await self._reads.direct({"multi_last": [subject], "up_to_seq": up_to})) is not None:
            return found
        newest = await self._last_or_absent(subject)
        if newest is None or newest.seq <= up_to:
            return newest
        oldest = await self._reads.leader({"next_by_subj": subject, "seq": 1})
        if oldest is None or oldest.seq > up_to:
            return None
        raise Unavailable(f"a replica of {self._stream} has not come to sequence {up_to} yet")

    async def at(self, sequence: int) -> Commit | None:
        """See `eventlog.port.EventLog.at`."""
        if sequence < 1:
            return None
        request = {"seq": sequence}
        found = await self._persist(lambda: self._reads.direct(request))
        return self._commit(found or await self._persist(lambda: self._reads.leader(request)))

    async def decrypt(self, commit: Commit) -> Sequence[RecordedEvent]:
        """See `eventlog.port.EventLog.reveal`."""
        return await revealed(commit, self._registry, self._people)

    async def history(self, aggregate: AggregateId, *, after: int = 0) -> AsyncIterator[Commit]:
        """See `eventlog.port.EventLog.history`. Raises Unavailable."""
        newest = await self.last(aggregate, consistent=True)
        while newest is not None and after < newest.sequence:
            request = {"batch": _HISTORY_AT_ONCE, "next_by_subj": aggregate.subject, "seq": after + 1}
            for stored in await self._persist(partial(self._some, request)):
                if stored.seq > newest.sequence:
                    return
                after = stored.seq
                yield Commit(stored.seq, stored.subject, stored.data, self._registry, stored.hdrs)

    async def _some(self, request: dict[str, Any]) -> Sequence[StoredMessage]:
        """Messages that are known to be there."""
        found = await self._reads.several(request)
        if not found:
            raise Unavailable(f"a replica of {self._stream} is behind")
        return found

    async def ids(self, category: str) -> Sequence[str]:
        """Return the ids of the aggregates of a category, as the leader counts them. Raises Unavailable."""
        subjects = await self._persist(lambda: subjects_of(self._connection, self._stream, f"{category}.*"))
        return sorted(subject.rpartition(".")[2] for subject in subjects)

    async def last_of_all(self, category: str) -> AsyncIterator[Sequence[Commit]]:
        """The last commit of each aggregate of a category, in lists. A commit may be a moment old on a cluster, as in `last`.

        Raises Unavailable, also if a commit cannot be read: none is left out.
        """
        ids = await self.ids(category)
        for begin in range(0, len(ids), _LAST_AT_ONCE):
            subjects = [f"{category}.{id_}" for id_ in ids[begin : begin + _LAST_AT_ONCE]]
            request = {"multi_last": subjects, "batch": len(subjects)}
            found = await self._persist(partial(self._reads.several, request))
            if len(found) < len(subjects):
                missing = set(subjects) - {stored.subject for stored in found}
                raise Unavailable(f"the last commit of {min(missing)} cannot be read")
            yield [Commit(stored.seq, stored.subject, stored.data, self._registry, stored.hdrs) for stored in found]

    def _commit(self, stored: StoredMessage | None) -> Commit | None:
        if stored is None:
            return None
        commit = Commit(stored.seq, stored.subject, stored.data, self._registry, stored.hdrs)
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
        lists: Any = reader.follow(
            self._connection,
            self._stream,
            self._registry,
            after=after,
            until=until,
            aggregate=aggregate,
            batch=batch,
            incarnation=incarnation,
            proof=proof,
        )
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
        body = msgspec.json.encode(request) if request else b""
        reply = await self._connection.ask(f"$JS.API.STREAM.INFO.{self._stream}", body)
        answer: dict[str, Any] = msgspec.json.decode(reply.data)
        if "error" in answer:
            raise Unavailable(f"no information on the stream {self._stream}: {answer['error']['description']}")
        self._fence.saw(answer)
        return answer

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of a read, tried for a moment: a repeated read does no harm."""
        loop = asyncio.get_running_loop()
        end = loop.time() + READ_DEADLINE
        while True:
            try:
                return await attempt()
            except Unavailable as error:
                if loop.time() + _PAUSE >= end:
                    if isinstance(error, OutcomeUnknown):
                        raise Unavailable(f"the stream {self._stream} cannot be read: {error}") from error
                    raise
            await asyncio.sleep(_PAUSE)
            await self._connection.up(end - loop.time())


__all__ = ["READ_DEADLINE", "JetStreamLog"]
