"""The shape of an aggregate: how it decides, and how events change it. Both are pure: no I/O, no clock, no random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

import attrs

from eventlog.commit import AggregateId

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")


@attrs.frozen
class Decider(Generic[S, C, E]):
    """An aggregate's rules.

    `decide(command, state)` gives the events that a command leads to (none: nothing to do) or raises the service's domain
    error; `evolve(state, event)` gives the state after an event. A state of None is an aggregate that does not exist yet.
    `confirm(command, state)` gives the event that says that a command led to nothing. It is stored where the command has an
    idempotency key: repeated when the state is another one, the command is known to have had its effect, which was none.
    """

    category: str
    decide: Callable[[C, S | None], Sequence[E]]
    evolve: Callable[[S | None, E], S]
    confirm: Callable[[C, S], E] | None = None

    def aggregate(self, id_: str) -> AggregateId:
        """The id of an aggregate of this kind."""
        return _aggregate(self.category, id_)

    def fold(self, events: Iterable[E], state: S | None = None) -> S | None:
        """The state after these events."""
        for event in events:
            state = self.evolve(state, event)
        return state


@lru_cache(maxsize=10_000)
def _aggregate(category: str, id_: str) -> AggregateId:
    """Checked once for many commands: what is asked for again is the same object, whose hash is known."""
    return AggregateId(category, id_)
