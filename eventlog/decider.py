"""The shape of an aggregate: how it decides, and how events change it. Both are pure: no I/O, no clock, no random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import attrs

from eventlog.commit import AggregateId

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")


@attrs.frozen
class Decider(Generic[S, C, E]):
    """The rules of one kind of aggregate.

    `category` is `<service>.<aggregate>`. `decide(command, state)` gives the events of a command (none: nothing to do) or raises
    the service's domain error. `evolve(state, event)` gives the state after an event.

    `initial` is the state of an aggregate without events. It is None if a rule demands that the aggregate exists: `decide` and
    `evolve` then take None, and the rule refuses the command. Only states after events are stored.

    `confirm(command, state)` gives the event for a command that changes nothing. It is stored if the command has an idempotency
    key: if the command is repeated in another state, its effect (none) is known.
    """

    category: str
    decide: Callable[[C, Any], Sequence[E]]
    evolve: Callable[[Any, E], S]
    initial: S | None = attrs.field(kw_only=True)
    confirm: Callable[[C, S], E] | None = attrs.field(default=None, kw_only=True)

    def aggregate(self, id_: str) -> AggregateId:
        """The id of an aggregate of this kind."""
        return _aggregate(self.category, id_)

    def fold(self, events: Iterable[E], state: S | None = None) -> S | None:
        """The state after these events; `state` is the one before them, None for an aggregate without events."""
        after = self.initial if state is None else state
        for event in events:
            after = self.evolve(after, event)
        return after


@lru_cache(maxsize=10_000)
def _aggregate(category: str, id_: str) -> AggregateId:
    """Checked once for many commands: a repeated object is the same one, whose hash is known."""
    return AggregateId(category, id_)
