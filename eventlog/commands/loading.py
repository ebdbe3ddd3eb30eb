"""The knowledge before a decision: the state of an aggregate, and the answers of commands with an idempotency key.

The last commit of an aggregate is its state, so it is trusted only if it is bound to the commit before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import attrs
import structlog

from eventlog.commit import AggregateId, Commit, Context
from eventlog.decider import Decider
from eventlog.errors import AggregateDamaged, KeyReused, LogDiverged, StateLost, Unavailable, UndecodableCommit
from eventlog.port import EventLog, commit_at
from eventlog.support.chain import Break, read_link_fault

S = TypeVar("S")
E = TypeVar("E")


@attrs.frozen(kw_only=True)
class Outcome(Generic[S, E]):
    """Result of a command: its events (none: there was nothing to do), the state after them, the aggregate's sequence.

    `replayed`: the command's idempotency key had taken effect before. Events, state and sequence are then from that time.
    """

    aggregate: AggregateId
    sequence: int
    events: tuple[E, ...]
    state: S
    replayed: bool = False


@attrs.frozen
class KeyUse:
    """The use of an idempotency key: fingerprint of the request, aggregate's subject, sequence of the commit that bears it."""

    key: str
    fingerprint: str | None
    subject: str
    sequence: int


class Keys(Protocol):
    """Finds the uses of idempotency keys: a read model of the same log (`projections.keys.CommandKeys`)."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        """The uses of keys, looked up when everything up to sequence `reached` is in the read model. A new key is left out.

        An error is in the place of a use that cannot be known. `subject` is the aggregate that they are asked for. Raises
        Unavailable if none can be known.
        """


def uses_in(commit: Commit) -> Sequence[KeyUse]:
    """The keys that a commit bears. Raises UndecodableCommit."""
    return [
        KeyUse(event.key, event.fingerprint, commit.subject, commit.sequence)
        for event in commit.body.events
        if event.key is not None
    ]


def use_in(commit: Commit, key: str) -> KeyUse | None:
    """The use of a key in one commit; None if the commit does not bear it. Raises UndecodableCommit."""
    return next((use for use in uses_in(commit) if use.key == key), None)


def check_request(context: Context, fingerprint: str | None) -> None:
    """Raise KeyReused unless the key was first used with this very request."""
    if context.fingerprint != fingerprint:
        raise KeyReused(f"the idempotency key {context.key!r} was used for another request")


class Replays:
    """Finds earlier outcomes in one log. `keys` finds idempotency keys; without it commands with a key raise ValueError."""

    def __init__(self, log: EventLog, keys: Keys | None) -> None:
        self._log = log
        self._keys = keys

    async def uses(self, contexts: Iterable[Context], aggregate: AggregateId, reached: int) -> Mapping[str, KeyUse | Exception]:
        """The uses of the keys of commands on an aggregate, looked up together; an error in place of one that is not known."""
        keys = list(dict.fromkeys(context.key for context in contexts if context.key is not None))
        if not keys or self._keys is None:
            return {}
        try:
            return await self._keys.find(keys, aggregate.subject, reached)
        except Exception as error:  # noqa: BLE001 - the answer of each command with a key
            return dict.fromkeys(keys, error)

    async def find(
        self,
        decider: Decider[Any, Any, Any],
        aggregate: AggregateId,
        context: Context,
        uses: Mapping[str, KeyUse | Exception],
        spent: int | None = None,
    ) -> Outcome[Any, Any] | None:
        """Return the earlier outcome if the command's key has taken effect before, or None.

        `spent` is the sequence of a commit that may bear the key. This commit has precedence over the read model.
        """
        if context.key is None:
            return None
        if self._keys is None:
            raise ValueError("this executor was given no read model to find idempotency keys in")
        use = None if spent is None else use_in(await commit_at(self._log, spent), context.key)
        key_use = use or uses.get(context.key)
        if isinstance(key_use, Exception):
            raise key_use
        if key_use is None:
            return None
        check_request(context, key_use.fingerprint)
        if key_use.subject != aggregate.subject:
            raise KeyReused(f"the idempotency key {context.key!r} was used for {key_use.subject}")
        commit = await commit_at(self._log, key_use.sequence)
        if use_in(commit, context.key) is None:
            raise LogDiverged(key_use.sequence)  # the tables saw the key in a commit that is not there any more
        outcome = await self._outcome(commit, context.key)
        if len(outcome.events) == len(commit.events):
            return outcome
        return attrs.evolve(outcome, state=await self._state_after(decider, commit, context.key))

    async def batch(self, earlier: Outcome[Any, Any]) -> Sequence[Outcome[Any, Any]]:
        """Return the outcomes of the batch that an earlier use of the key stored.

        Its commits have adjacent sequences, and the first one is the cause of the others. Raises Unavailable if a commit cannot
        be read that may be one of them.
        """
        outcomes = [earlier]
        first = await commit_at(self._log, earlier.sequence)
        while (commit := await self._stored(earlier.sequence + len(outcomes))) is not None:
            if not commit.is_guarded or commit.body.events[0].causation != first.id:
                break
            outcomes.append(await self._outcome(commit, None))
        return outcomes

    async def _stored(self, sequence: int) -> Commit | None:
        """The commit at a sequence; None if the log ends before it."""
        commit = await self._log.at(sequence)
        if commit is None and (await self._log.head()).last >= sequence:
            return await commit_at(self._log, sequence)  # it came in between, or cannot be read
        return commit

    async def _state_after(self, decider: Decider[Any, Any, Any], commit: Commit, key: str) -> Any:
        """The state right after one command's events, in a commit that holds other commands' events too."""
        state = (await commit_at(self._log, commit.guard)).state if commit.guard else None
        last = max(index for index, event in enumerate(commit.events) if event.context.key == key)
        return decider.fold((event.data for event in commit.events[: last + 1]), state)

    async def _outcome(self, commit: Commit, key: str | None) -> Outcome[Any, Any]:
        """Return the outcome of a stored commit for the command with that key (None: for all its events)."""
        return Outcome(
            aggregate=commit.aggregate,
            sequence=commit.sequence,
            events=tuple(event.data for event in await self._log.decrypt(commit) if key is None or event.context.key == key),
            state=commit.state,
            replayed=True,
        )


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

    async def _check(self, commit: Commit, digest: str, loaded: LoadedAggregate | None) -> None:
        """Check that a commit is bound to the one before it. This takes one more read, unless the digest is kept."""
        if loaded is not None and loaded.sequence == commit.sequence and loaded.digest is not None:
            if loaded.digest != digest:
                raise AggregateDamaged(commit.subject, commit.sequence, "it is not the commit that was stored there before")
            return
        before = None
        if loaded is not None and loaded.digest is not None and loaded.sequence < commit.sequence:
            before = loaded.sequence, loaded.digest.encode()
        fault = await read_link_fault(commit, before, self._log.at)
        if fault is not None:
            if fault.kind is Break.UNREAD and fault.guard is not None:
                raise AggregateDamaged(commit.subject, fault.guard, "this commit cannot be read any more")
            raise AggregateDamaged(commit.subject, commit.sequence, fault.problem)
