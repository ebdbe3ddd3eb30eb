"""The port of the event log: the promises to writers and readers, which every implementation keeps.

Implementations: `eventlog.jetstream` (the product) and `eventlog.testing.memory` (public, for tests); both pass the same suite.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import attrs

from eventlog.commit import AggregateId, Appended, Commit, Proposal, RecordedEvent, Registry
from eventlog.errors import Unavailable

DEADLINE = 15.0
"""Seconds within which an append is acknowledged or refused, unless a caller says otherwise."""


@attrs.frozen
class Head:
    """The ends of the log: its incarnation, the first sequence it has, the last one (first - 1 if it is empty)."""

    incarnation: str
    first: int
    last: int


_REPAIRED = "~"


def after_repair(incarnation: str) -> str:
    """The incarnation of a stream after one more repair with tombstones: `x`, `x~1`, `x~2`."""
    origin, _, number = incarnation.partition(_REPAIRED)
    return f"{origin}{_REPAIRED}{int(number or 0) + 1}"


def is_repaired(incarnation: str, before: str) -> bool:
    """Whether a stream of this incarnation is a repaired stream of the incarnation `before`."""
    origin, _, number = incarnation.partition(_REPAIRED)
    earlier, _, earlier_number = before.partition(_REPAIRED)
    return origin == earlier and int(number or 0) > int(earlier_number or 0)


class EventLog(Protocol):
    """One event stream: guarded appends, reads of one aggregate, replay in order."""

    @property
    def registry(self) -> Registry:
        """The types of the events and states in it."""

    async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        """Store a commit, durably, if the aggregate's last sequence is still the expected one.

        Appending the same commit (by its id) again gives the same answer, `replayed`, however much later.
        Raises Conflict, TooLarge, Unavailable (not stored), OutcomeUnknown (after `deadline` seconds without an answer),
        KeyTaken where another commit with the proposal's `key` was stored a moment ago, LogDamaged where the stream is not the
        one that was read and written before.
        """

    async def append_together(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """Store commits of several aggregates, all of them or none. At most 1,000, no aggregate twice.

        Answers and errors as in `append`, in the order of the proposals.
        """

    async def append_in_row(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """Store commits of one aggregate, each right after the one before it: the first one, or more of them, as is fastest.

        `expected` and `prev` of each proposal name the aggregate's last commit of now: the log binds each further commit to the
        one before it. Returns an answer for each stored commit. Raises as `append` does for the first one, and then no commit
        is stored. OutcomeUnknown is about all of them.
        """

    async def last(self, aggregate: AggregateId, *, up_to: int | None = None, consistent: bool = False) -> Commit | None:
        """The aggregate's last commit: its present state. With `up_to`, its last one at or below that sequence.

        May be a moment old on a cluster: the guard of an append finds out. A refusal has no guard, so it is
        decided on a `consistent` read, which the leader answers. None is certain: a commit that is there and cannot be read
        raises AggregateDamaged. Raises Unavailable.
        """

    async def at(self, sequence: int) -> Commit | None:
        """The commit stored at a sequence. Raises Unavailable."""

    async def decrypt(self, commit: Commit) -> Sequence[RecordedEvent]:
        """The events of one of its commits with their personal fields opened: ERASED where the person's key is gone.

        SEALED if this log was given no keyring. Raises Unavailable, UndecodableCommit.
        """

    def history(self, aggregate: AggregateId, *, after: int = 0) -> AsyncIterator[Commit]:
        """The aggregate's commits with a sequence above `after`, in order, up to its last one at the time of the call."""

    def follow(
        self,
        *,
        after: int,
        until: int | None = None,
        aggregate: AggregateId | None = None,
        batch: int = 1000,
        incarnation: str | None = None,
        proof: str | None = None,
    ) -> AsyncIterator[Sequence[Commit]]:
        """The commits above sequence `after`, in order, in lists of 1 to `batch`: as many as there are, then live ones.

        Ends after sequence `until` if one is given (at once if no commit is left to read), else never: it continues over
        reconnects and restarts of the broker, without a time limit.

        `aggregate` leaves only that one's commits in. If there is also an end and one of them cannot be read, it raises
        SequenceGap or AggregateDamaged. Without `aggregate` no sequence is left out: raises SequenceGap if one is missing,
        LogTruncated if `after` is before the first or behind the last one, IncarnationChanged if the stream is recreated while it
        is read, or is not `incarnation`, LogDiverged if the commit that was read last is another one when reading resumes after
        an interruption. `proof` is the digest of the commit at `after`, for a reader that has read it before: then it is also
        compared at the beginning.

        Reads no further ahead than a few lists: memory is bounded however long the log is.
        """

    async def head(self) -> Head:
        """Where the log begins and ends now, asked of the leader. Raises Unavailable."""


async def commit_at(log: EventLog, sequence: int) -> Commit:
    """The commit at a sequence at which one was stored. Raises Unavailable."""
    commit = await log.at(sequence)
    if commit is None:
        raise Unavailable(f"sequence {sequence} cannot be read now")
    return commit
