"""The event log on JetStream: the product's implementation of `eventlog.port.EventLog`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from eventlog.commit import Appended, Proposal, Registry
from eventlog.errors import TooLarge
from eventlog.jetstream.append import MOST_BYTES, MOST_MESSAGES, Appender, Batches, GroupCommit, Message, encode
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.fence import WriteHealth
from eventlog.jetstream.reading import LogReader
from eventlog.port import DEADLINE
from eventlog.privacy import PersonalDataCipher
from eventlog.support import tracing
from eventlog.support.tracing import Timings, Trace


class JetStreamLog(LogReader):
    """One stream of a NATS server or cluster.

    It owns nothing and needs no end: the connection outlives it. Only appends through the same object share batches. `people`
    seals and opens personal fields: it is needed where such are written.
    """

    def __init__(
        self, connection: Connection, stream: str, registry: Registry, *, people: PersonalDataCipher | None = None
    ) -> None:
        super().__init__(connection, stream, registry, people)
        self._appender = Appender(connection, self._reader, self._fence.check)
        self._batches = Batches(connection, self._appender)
        self.group = GroupCommit(self._appender, self._batches)
        """Figures of group commit, for metrics."""
        self.timings = Timings()
        """How long it took until the broker had stored what was appended, for metrics."""
        self.failed = 0
        """How many appends ended with an error, for metrics."""
        self.writes = WriteHealth()
        """Whether it takes appends."""

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
        with self._observed(proposals) as appended:
            await self._fence.check()
            messages, before = await encoded(proposals), self._fence.acknowledged
            self.writes.check()
            with self.writes.appending(sum(message.size for message in messages)):
                stored = await append(messages, end)
            for place, message in zip(stored, messages, strict=False):
                appended.append(Appended(place.sequence, place.replayed, message.digest))
                self._fence.stored(appended[-1], before)
        return appended

    @contextmanager
    def _observed(self, proposals: Sequence[Proposal]) -> Iterator[list[Appended]]:
        """Count and time an append, which the block fills in, and export a span for each stored commit."""
        appended: list[Appended] = []
        began, started = time.time_ns(), perf_counter()
        try:
            yield appended
        except Exception:
            self.failed += 1
            raise
        self.timings.observe(perf_counter() - started)
        if tracing.recording_spans():
            self._export(proposals[: len(appended)], began)

    async def _encode(self, proposal: Proposal, after: Message | None = None) -> Message:
        sealed = () if self._people is None else await self._people.encrypt(proposal, self.registry)
        return encode(self.registry, proposal, self.connection.max_payload, sealed, after=after)

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
                name = f"{tracing.SEND} {self._stream}"
                about = tracing.message_attributes(tracing.SEND, self._stream, message_id=proposal.commit.id)
                tracing.record_span(name, parent.child(), tracing.SpanKind.PRODUCER, began, parent=parent, attributes=about)
