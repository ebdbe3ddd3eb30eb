"""Loading aggregates for a decision, and keeping recently changed ones.

The last commit of an aggregate is its state, so it is trusted only if it is bound to the commit before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import attrs
import structlog

from eventlog.commit import AggregateId, Commit
from eventlog.errors import AggregateDamaged, StateLost, Unavailable, UndecodableCommit
from eventlog.port import EventLog
from eventlog.support.chain import Break, read_link_fault

log = structlog.get_logger(__name__)

CACHED_STATES = 10_000
AHEAD = timedelta(minutes=1)
"""How far a commit may be ahead of this process's clock before that is said."""


@attrs.frozen
class LoadedAggregate:
    """An aggregate as far as it is known; `fresh`: read from the log for this very decision.

    `sequence` and `digest` belong to its last commit. They are 0 and None without a commit.
    """

    state: Any
    sequence: int
    digest: str | None
    fresh: bool


class Loader:
    """Loads the aggregates of one log, and keeps the states of the last CACHED_STATES of them."""

    def __init__(self, log: EventLog, now: Callable[[], datetime]) -> None:
        self._log = log
        self._now = now
        self._kept: OrderedDict[AggregateId, LoadedAggregate] = OrderedDict()

    def known(self, aggregate: AggregateId) -> LoadedAggregate | None:
        """An aggregate as it was when it was loaded or changed last, if it is kept."""
        found = self._kept.get(aggregate)
        if found is not None:
            self._kept.move_to_end(aggregate)
        return found

    async def load(self, aggregate: AggregateId, *, fresh: bool) -> LoadedAggregate:
        """Read an aggregate's last commit; `fresh`: the one that the leader has.

        Raises AggregateDamaged where the commit cannot be what a writer stored there, Unavailable.
        """
        kept = self._kept.get(aggregate)
        commit = await self._log.last(aggregate, consistent=fresh)
        if fresh and kept is not None and (commit is None or commit.sequence < kept.sequence):
            raise Unavailable(
                f"the log does not have sequence {kept.sequence} of {aggregate.subject} now, which it has acknowledged: its "
                "leader is behind, or it was cut"
            )
        if commit is None:
            return LoadedAggregate(None, 0, None, fresh=fresh)
        digest = commit.digest
        await self._check(commit, digest, kept)
        try:
            state = commit.state
        except StateLost as error:
            if error.lost.replaces is not None:
                raise AggregateDamaged(commit.subject, commit.sequence, str(error)) from error
            state = None  # its only commit is lost: it may be created again
        except UndecodableCommit as error:
            raise AggregateDamaged(commit.subject, commit.sequence, str(error)) from error
        self._compare_clocks(commit)
        self.remember(aggregate, state, commit.sequence, digest)
        return LoadedAggregate(state, commit.sequence, digest, fresh=fresh)

    def _compare_clocks(self, commit: Commit) -> None:
        """Warn if the clock of a writer was ahead, or the clock of this machine is behind: rules about time depend on it."""
        ahead = commit.at - self._now()
        if ahead > AHEAD:
            log.warning(
                "a commit is from the future: compare the clocks of the machines",
                aggregate=commit.subject,
                sequence=commit.sequence,
                at=commit.at.isoformat(),
                seconds_ahead=round(ahead.total_seconds()),
            )

    def learn(self, commit: Commit) -> None:
        """Take a commit for its aggregate's last, unless a later one is known. Raises UndecodableCommit."""
        kept = self._kept.get(commit.aggregate)
        if kept is None or kept.sequence < commit.sequence:
            self.remember(commit.aggregate, commit.state, commit.sequence, commit.digest)

    def remember(self, aggregate: AggregateId, state: Any, sequence: int, digest: str | None) -> LoadedAggregate:
        """Keep the state of an aggregate after its last commit."""
        loaded = self._kept[aggregate] = LoadedAggregate(state, sequence, digest, fresh=False)
        self._kept.move_to_end(aggregate)
        if len(self._kept) > CACHED_STATES:
            self._kept.popitem(last=False)
        return loaded

    def forget(self, aggregate: AggregateId) -> None:
        """Forget an aggregate, because the outcome of its last append is not known yet."""
        self._kept.pop(aggregate, None)

    async def _check(self, commit: Commit, digest: str, kept: LoadedAggregate | None) -> None:
        """Check that a commit is bound to the one before it. This takes one more read, unless the digest is kept."""
        if kept is not None and kept.sequence == commit.sequence and kept.digest is not None:
            if kept.digest != digest:
                raise AggregateDamaged(commit.subject, commit.sequence, "it is not the commit that was stored there before")
            return
        before = None
        if kept is not None and kept.digest is not None and kept.sequence < commit.sequence:
            before = kept.sequence, kept.digest.encode()
        fault = await read_link_fault(commit, before, self._log.at)
        if fault is not None:
            if fault.kind is Break.UNREAD and fault.guard is not None:
                raise AggregateDamaged(commit.subject, fault.guard, "this commit cannot be read any more")
            raise AggregateDamaged(commit.subject, commit.sequence, fault.problem)
