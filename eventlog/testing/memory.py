"""The event log in memory: the whole port with the same semantics, for tests of services.

Its faults are public: `before` and `after` are called around each append, so that a test can slow it down, let another writer be
first, refuse it, or store it and lose the acknowledgement.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from eventlog.commit import AggregateId, Appended, Commit, Proposal, RecordedEvent, Registry
from eventlog.errors import (
    AggregateDamaged,
    Conflict,
    IncarnationChanged,
    KeyTaken,
    LogDiverged,
    LogTruncated,
    OutcomeUnknown,
    SequenceGap,
    TooLarge,
    Unavailable,
)
from eventlog.port import DEADLINE, Head
from eventlog.privacy import Key, PersonalDataCipher, revealed
from eventlog.support.chain import FOLLOWS, GUARD, link


class MemoryKeyring:
    """The keys of persons in this object: `eventlog.privacy.Keyring`."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._count = self._replacements = 0

    async def key_of(self, person: str) -> Key:
        """See `eventlog.privacy.Keyring.key_of`."""
        if person not in self._keys:
            self._count += 1
            self._keys[person] = Key.new(self._count)
        return self._keys[person]

    async def find(self, person: str) -> Key | None:
        """See `eventlog.privacy.Keyring.find`."""
        return self._keys.get(person)

    async def after(self, place: int) -> Sequence[Key]:
        """See `eventlog.privacy.Keyring.after`."""
        return sorted((key for key in self._keys.values() if key.place > place), key=lambda key: key.place)

    async def identity(self) -> str:
        """See `eventlog.privacy.Keyring.identity`."""
        return str(self._replacements)

    def replace(self) -> None:
        """Lose all keys, as if a new store were in the place of this one."""
        self._keys = {}
        self._replacements += 1

    async def destroy(self, key: Key) -> None:
        """See `eventlog.privacy.Keyring.destroy`."""
        self._keys = {person: one for person, one in self._keys.items() if one != key}


Hook = Callable[[Sequence[Proposal]], Awaitable[None]]

MAX_PAYLOAD = 1024**2
"""The most bytes that a commit may have."""
MOST_TOGETHER = 1000


class MemoryLog:
    """A log in this object.

    Hooks: `before` is awaited with the proposals of each append before it is judged (sleep in it for latency, append in it for a
    conflict, raise Unavailable in it), `after` once they are stored and before the caller hears of it. Both are None at first.
    `people` seals and opens personal fields.
    """

    def __init__(self, registry: Registry, *, people: PersonalDataCipher | None = None) -> None:
        self.before: Hook | None = None
        self.after: Hook | None = None
        self.incarnation = str(uuid.uuid4())
        self.registry = registry
        """The types of the events and states in it."""
        self._people = people
        self._commits: list[Commit] = []
        self._by_subject: dict[str, list[Commit]] = {}
        self._damaged: set[int] = set()
        self._keys: dict[str, int] = {}
        self._news = asyncio.Condition()

    # Faults

    def lose_next_answer(self) -> None:
        """The next append is stored, and its caller gets OutcomeUnknown all the same."""

        async def lose(proposals: Sequence[Proposal]) -> None:
            self.after = None
            raise OutcomeUnknown(f"the answer to the append to {proposals[0].aggregate.subject} was lost")

        self.after = lose

    def refuse_next(self, error: Exception) -> None:
        """The next append is not stored, and raises this."""

        async def refuse(_: Sequence[Proposal]) -> None:
            self.before = None
            raise error

        self.before = refuse

    async def create_anew(self) -> None:
        """Lose all commits and start again under a new incarnation, as when an operator deletes the stream."""
        self._damaged.clear()
        self._keys.clear()
        self.incarnation = str(uuid.uuid4())
        await self._set(())

    async def cut(self, sequence: int) -> None:
        """Lose all commits above a sequence, under the same incarnation: a torn tail, or an older backup."""
        await self._set(self._commits[:sequence])

    async def tamper(self, sequence: int, data: bytes) -> None:
        """Replace the bytes at a sequence."""
        other = [self.registry.commit(c.sequence, c.subject, data, c.headers) for c in self._commits[sequence - 1 : sequence]]
        await self._set([*self._commits[: sequence - 1], *other, *self._commits[sequence:]])

    async def publish(self, subject: str, data: bytes, headers: bytes | None = None) -> int:
        """Store a message past the event log, as any client of the broker can; gives its sequence."""
        await self._set([*self._commits, self.registry.commit(len(self._commits) + 1, subject, data, headers)])
        return len(self._commits)

    def damage(self, sequence: int) -> None:
        """The record at a sequence cannot be read any more, as after a flipped bit on the disk."""
        self._damaged.add(sequence)

    async def _set(self, commits: Sequence[Commit]) -> None:
        async with self._news:
            self._commits, self._by_subject = [], {}
            for commit in commits:
                self._add(commit)
            self._news.notify_all()

    def _add(self, commit: Commit) -> None:
        self._commits.append(commit)
        self._by_subject.setdefault(commit.subject, []).append(commit)

    # Writing

    async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        """See `eventlog.port.EventLog.append`."""
        (appended,) = await self.append_together([proposal], deadline=deadline)
        return appended

    async def append_together(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """See `eventlog.port.EventLog.append_together`. Raises ValueError for too many proposals or an aggregate twice."""
        if len({proposal.aggregate for proposal in proposals}) < len(proposals):
            raise ValueError("an aggregate may be in a batch once only")
        if len(proposals) > MOST_TOGETHER:
            raise ValueError(f"at most {MOST_TOGETHER} commits can be stored together, not {len(proposals)}")
        bodies = [await self._encode(proposal) for proposal in proposals]
        if not proposals:
            return []
        return await self._commit(proposals, lambda: self._judge(proposals, bodies), deadline)

    async def append_in_row(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """See `eventlog.port.EventLog.append_in_row`. Raises ValueError for no proposals, or for several aggregates."""
        if len({proposal.aggregate for proposal in proposals}) != 1:
            raise ValueError("a row has commits of one aggregate")
        bodies = [await self._encode(proposals[0])]
        for proposal in proposals[1:]:
            try:
                bodies.append(await self._encode(proposal, link(proposal.aggregate.subject, bodies[-1])))
            except (TooLarge, ValueError):
                break
        return await self._commit(proposals, lambda: self._judge_row(proposals, bodies), deadline)

    async def _commit(
        self, proposals: Sequence[Proposal], store: Callable[[], Sequence[Appended]], deadline: float
    ) -> Sequence[Appended]:
        if self.before is not None:
            await _within(deadline, self.before(proposals), Unavailable("the log did not answer, and stored nothing"))
        async with self._news:
            appended = store()
            self._news.notify_all()
        if self.after is not None:
            await _within(deadline, self.after(proposals), OutcomeUnknown("the log did not answer"))
        return appended

    def _judge_row(self, proposals: Sequence[Proposal], bodies: Sequence[bytes]) -> Sequence[Appended]:
        appended = [*self._judge(proposals[:1], bodies[:1])]
        if not appended[0].replayed:
            for proposal, body in zip(proposals[1:], bodies[1:], strict=False):
                if proposal.key in self._keys:
                    break
                appended.append(self._store(proposal, body, f"{FOLLOWS}: previous"))
        return appended

    async def _encode(self, proposal: Proposal, prev: str | None = None) -> bytes:
        """The bytes of a commit; `prev` is the digest of the commit before it in a row."""
        sealed = () if self._people is None else await self._people.encrypt(proposal, self.registry)
        body = self.registry.encode(proposal.commit, sealed, prev or proposal.prev)
        if len(body) > MAX_PAYLOAD:
            raise TooLarge(f"a commit of {len(body):,} bytes is over what one message may have ({MAX_PAYLOAD:,} bytes)")
        return body

    def _judge(self, proposals: Sequence[Proposal], bodies: Sequence[bytes]) -> Sequence[Appended]:
        stored = [self._find(proposal) for proposal in proposals]
        if None not in stored:
            return [Appended(commit.sequence, replayed=True, digest=commit.digest) for commit in stored if commit is not None]
        for proposal in proposals:
            last = self._last(proposal.aggregate.subject)
            if last != proposal.expected:
                raise Conflict(f"{proposal.aggregate.subject} is at sequence {last}, not at {proposal.expected}")
        for proposal in proposals:
            if proposal.key is not None and (taken := self._keys.get(proposal.key)) is not None:
                raise KeyTaken(taken)
        return [self._store(proposal, body) for proposal, body in zip(proposals, bodies, strict=True)]

    def _find(self, proposal: Proposal) -> Commit | None:
        """The commit that follows the guard, if it is the proposed one."""
        commits = self._by_subject.get(proposal.aggregate.subject, [])
        index = _index_after(commits, proposal.expected)
        return commits[index] if index < len(commits) and commits[index].id == proposal.commit.id else None

    def _last(self, subject: str) -> int:
        commits = self._by_subject.get(subject)
        return commits[-1].sequence if commits else 0

    def _store(self, proposal: Proposal, body: bytes, guard: str | None = None) -> Appended:
        subject, traceparent = proposal.aggregate.subject, proposal.commit.traceparent
        trace = "" if traceparent is None else f"traceparent: {traceparent}\r\n"
        headers = f"NATS/1.0\r\n{guard or f'{GUARD}: {proposal.expected}'}\r\n{trace}\r\n"
        commit = self.registry.commit(len(self._commits) + 1, subject, body, headers.encode())
        self._add(commit)
        if proposal.key is not None:
            self._keys[proposal.key] = commit.sequence
        return Appended(commit.sequence, digest=commit.digest)

    # Reading

    async def last(self, aggregate: AggregateId, *, up_to: int | None = None, consistent: bool = False) -> Commit | None:  # noqa: ARG002 - there is one copy only
        """See `eventlog.port.EventLog.last`."""
        commits = self._by_subject.get(aggregate.subject, [])
        index = len(commits) if up_to is None else _index_after(commits, up_to)
        if index and commits[index - 1].sequence in self._damaged:
            raise AggregateDamaged(aggregate.subject, commits[index - 1].sequence, "its last message cannot be read")
        return commits[index - 1] if index else None

    async def at(self, sequence: int) -> Commit | None:
        """See `eventlog.port.EventLog.at`."""
        there = 1 <= sequence <= len(self._commits) and sequence not in self._damaged
        return self._commits[sequence - 1] if there else None

    async def decrypt(self, commit: Commit) -> Sequence[RecordedEvent]:
        """See `eventlog.port.EventLog.decrypt`."""
        return await revealed(commit, self.registry, self._people)

    async def history(self, aggregate: AggregateId, *, after: int = 0) -> AsyncIterator[Commit]:
        """See `eventlog.port.EventLog.history`."""
        commits = self._by_subject.get(aggregate.subject, [])
        for commit in commits[_index_after(commits, after) :]:
            yield commit

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
        incarnation = incarnation or self.incarnation
        if aggregate is not None:
            proof = None
        self._check(after, incarnation, proof, whole=aggregate is None)
        while until is None or after < until:
            async with self._news:
                while self.incarnation == incarnation and len(self._commits) <= after:
                    await self._news.wait()
            self._check(after, incarnation, proof, whole=aggregate is None)
            commits = self._commits[after : min(after + batch, until or len(self._commits))]
            if aggregate is None:
                commits = self._up_to_damage(commits)
                proof = commits[-1].digest
            after = commits[-1].sequence
            if aggregate is not None:
                commits = [commit for commit in commits if commit.subject == aggregate.subject and self._is_there(commit, until)]
            if commits:
                yield commits

    def _check(self, after: int, incarnation: str, proof: str | None, *, whole: bool) -> None:
        if self.incarnation != incarnation:
            raise IncarnationChanged(incarnation, self.incarnation)
        if whole and after > len(self._commits):
            raise LogTruncated(f"the log ends at sequence {len(self._commits)}, before {after}")
        if proof is not None and after and self._commits[after - 1].digest != proof:
            raise LogDiverged(after)

    def _is_there(self, commit: Commit, until: int | None) -> bool:
        """Whether a commit of an aggregate can be read. Raises SequenceGap if all up to `until` are wanted."""
        if commit.sequence in self._damaged and until is not None:
            raise SequenceGap(commit.sequence, None)
        return commit.sequence not in self._damaged

    def _up_to_damage(self, commits: Sequence[Commit]) -> list[Commit]:
        found = list(itertools.takewhile(lambda commit: commit.sequence not in self._damaged, commits))
        if not found:
            raise SequenceGap(commits[0].sequence, None)
        return found

    async def head(self) -> Head:
        """See `eventlog.port.EventLog.head`."""
        return Head(self.incarnation, 1, len(self._commits))


def _index_after(commits: Sequence[Commit], sequence: int) -> int:
    """The index of the first commit above a sequence."""
    return bisect.bisect_right(commits, sequence, key=lambda commit: commit.sequence)


async def _within(deadline: float, work: Awaitable[None], error: Exception) -> None:
    try:
        async with asyncio.timeout(deadline):
            await work
    except TimeoutError as timeout:
        raise error from timeout
