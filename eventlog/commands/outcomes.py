"""The outcome of a command, also of an earlier one whose idempotency key has taken effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import attrs

from eventlog.commit import AggregateId, Commit, Context
from eventlog.decider import Decider
from eventlog.errors import KeyReused, LogDiverged, Unavailable
from eventlog.port import EventLog, commit_at

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
        found = use or uses.get(context.key)
        if isinstance(found, Exception):
            raise found
        if found is None:
            return None
        check_request(context, found.fingerprint)
        if found.subject != aggregate.subject:
            raise KeyReused(f"the idempotency key {context.key!r} was used for {found.subject}")
        commit = await commit_at(self._log, found.sequence)
        if use_in(commit, context.key) is None:
            raise LogDiverged(found.sequence)  # the tables saw the key in a commit that is not there any more
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
