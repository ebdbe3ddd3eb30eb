"""The port of the event log: what writers and readers may rely on, whichever implementation stands behind it.

Implementations: `eventlog.jetstream` (the product) and `eventlog.testing.memory` (public, for tests); both pass the same suite.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import attrs

from eventlog.commit import AggregateId, Appended, Commit, Proposal, RecordedEvent
from eventlog.registry import Registry

DEADLINE = 15.0
"""Seconds within which an append is acknowledged or refused, unless a caller says otherwise."""


@attrs.frozen
class Head:
    """The ends of the log: its incarnation, the first sequence it has, the last one (first - 1 where it is empty)."""

    incarnation: str
    first: int
    last: int


class EventLog(Protocol):
    """One event stream: guarded appends, reads of one aggregate, replay in order."""

    @property
    def registry(self) -> Registry:
        """The types of the events and states in it."""

    async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        """Store a commit, durably, if the aggregate's last sequence is still the expected one.

        Appending the same commit (by its id) again gives the same answer, `replayed`, however much later.
        Raises Conflict, TooLarge, Unavailable (not stored), OutcomeUnknown (after `deadline` seconds without an answer).
        """

    async def append_together(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        """Store commits of several aggregates, all of them or none. At most 1,000, no aggregate twice.

        Answers and errors as in `append`, in the order of the proposals.
        """

    async def last(self, aggregate: AggregateId, *, up_to: int | None = None, consistent: bool = False) -> Commit | None:
        """The aggregate's last commit: its present state. With `up_to`, its last one at or below that sequence.

        May be a moment old on a cluster: the guard of what is decided on it finds out. A refusal has no guard, so it is
        decided on a `consistent` read, which the leader answers. Raises Unavailable.
        """

    async def at(self, sequence: int) -> Commit | None:
        """The commit stored at a sequence. Raises Unavailable."""

    async def decrypt(self, commit: Commit) -> Sequence[RecordedEvent]:
        """The events of one of its commits with their personal fields opened: ERASED where the person's key is gone.

        SEALED where this log was given no keyring. Raises Unavailable, UndecodableCommit.
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
    ) -> AsyncIterator[Sequence[Commit]]:
        """The commits above sequence `after`, in order, in lists of 1 to `batch`: as many as there are, then live ones.

        Ends after sequence `until` where one is given (at once where nothing is left to read), else never: it goes on over
        reconnects and restarts of the broker, waiting as long as it takes. `aggregate` leaves only that one's commits in.
        Without it no sequence is left out: raises SequenceGap where one is missing, LogTruncated where `after` is before the
        first or behind the last one, IncarnationChanged where the stream is created anew meanwhile, or is not `incarnation`.
        Reads no further ahead than a few lists: memory is bounded however long the log is.
        """

    async def head(self) -> Head:
        """Where the log begins and ends now, asked of the leader. Raises Unavailable."""
