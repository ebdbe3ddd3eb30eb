"""The reads of a log on JetStream: the last commits of aggregates, their history, and all commits in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from eventlog.commit import AggregateId, Commit, RecordedEvent
from eventlog.errors import AggregateDamaged, OutcomeUnknown, Unavailable
from eventlog.jetstream.api import incarnation_of, persist, subjects_of
from eventlog.jetstream.fence import Fence
from eventlog.jetstream.follower import Follower
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.port import Head
from eventlog.privacy.encryption import PersonalDataCipher, revealed
from eventlog.registry import Registry

T = TypeVar("T")

READ_DEADLINE = 2.0
"""Seconds within which a read is answered or refused: a broker that restarts is back by then."""

_PAUSE = 0.02
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
        self._reads = MessageReader(connection, stream)
        self._fence = Fence(connection, stream, self._reads)

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
        """The last message on a subject up to a sequence. The replica that gives it may be behind: the leader has the rest."""
        if up_to > 0 and (found := await self._reads.direct({"multi_last": [subject], "up_to_seq": up_to})) is not None:
            while found.sequence < up_to:
                newer = await self._reads.leader({"next_by_subj": subject, "seq": found.sequence + 1})
                if newer is None or newer.sequence > up_to:
                    break
                found = newer
            return found
        newest = await self._last_or_absent(subject)
        if newest is None or newest.sequence <= up_to:
            return newest
        oldest = await self._reads.leader({"next_by_subj": subject, "seq": 1})
        if oldest is None or oldest.sequence > up_to:
            return None
        raise Unavailable(f"no replica of {self._stream} has given {subject} as it was at sequence {up_to}: it may be behind")

    async def at(self, sequence: int) -> Commit | None:
        """See `eventlog.port.EventLog.at`."""
        if sequence < 1:
            return None
        request = {"seq": sequence}
        found = await self._persist(lambda: self._reads.direct(request))
        return self._commit(found or await self._persist(lambda: self._reads.leader(request)))

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
        found = await self._reads.several(request)
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
            found = await self._persist(partial(self._reads.several, request))
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
        info = await self._reads.info(request, timeout=READ_DEADLINE)
        self._fence.saw(info)
        return info

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of a read, tried for a moment: a repeated read does no harm."""
        try:
            return await persist(self.connection, attempt, READ_DEADLINE, pause=_PAUSE)
        except OutcomeUnknown as error:
            raise Unavailable(f"the stream {self._stream} cannot be read: {error}") from error
