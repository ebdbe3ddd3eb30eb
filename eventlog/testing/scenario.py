"""Given, when, then: tests of deciders that read like the rule they state.

    given(PRODUCT, Registered("flour"), Booked(3000)).when(TakeOut(1000)).then(Taken(1000))
    given(PRODUCT, Registered("flour")).when(TakeOut(1)).then_refused(InsufficientStock, match="available 0")

Each case also checks the promises of every decider: it is pure (deciding and evolving again gives the same, and leaves its
inputs unchanged), `evolve` gives a state for each event, and the classes of both are registered. If a registry is given, each
event and state survives being stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar

import attrs

from eventlog.commit import Commit, NewCommit, NewEvent, Registry, check_registered
from eventlog.decider import Decider

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")


def given(decider: Decider[S, C, E], *events: E, registry: Registry | None = None) -> Given[S, C, E]:
    """An aggregate with these events behind it; with `registry`, each event and state has to survive encoding and decoding."""
    return Given(decider, events, registry)


@attrs.frozen
class Given(Generic[S, C, E]):
    """An aggregate and its history."""

    decider: Decider[S, C, E]
    events: tuple[E, ...]
    registry: Registry | None

    def when(self, command: C) -> When[S, C, E]:
        """The command that the test is about."""
        return When(self, command)


@attrs.frozen
class When(Generic[S, C, E]):
    """An aggregate and a command to it."""

    given: Given[S, C, E]
    command: C

    def then(self, *events: E) -> S | None:
        """Exactly these events follow (none: nothing happens). Gives the state after them, for further checks."""
        decided = self._decide()
        if decided != events:
            raise AssertionError(_difference(self.command, expected=events, decided=decided))
        return self._states(decided)[-1]

    def then_refused(self, error: type[Exception], *, match: str = "") -> None:
        """The command is refused with this error, whose text has a match of the regular expression."""
        try:
            decided = self._decide()
        except error as refusal:
            if not re.search(match, str(refusal)):
                raise AssertionError(
                    f"{self.command} was refused with {str(refusal)!r}, which {match!r} does not match"
                ) from refusal
            return
        raise AssertionError(f"{self.command} was not refused, its events are {list(decided)}")

    def _decide(self) -> tuple[E, ...]:
        decider, state = self.given.decider, self._states()[-1]
        decided: tuple[E, ...] | Exception
        try:
            decided = tuple(decider.decide(self.command, state))
        except Exception as refusal:
            self._unchanged(state)
            raise refusal from None
        self._unchanged(state)
        again = tuple(decider.decide(self.command, state))
        if again != decided:
            raise AssertionError(f"decide is not pure: the same command and state gave {list(decided)}, then {list(again)}")
        return decided

    def _unchanged(self, state: S | None) -> None:
        if state != self._states()[-1]:
            raise AssertionError(f"decide is not pure: it changed the state that it was given to {state}")

    def _states(self, decided: Sequence[E] = ()) -> list[S | None]:
        """The states before and after each event, each made by folding from the start."""
        decider, events = self.given.decider, (*self.given.events, *decided)
        states = [decider.fold(events[:count]) for count in range(len(events) + 1)]
        for event, before, after in zip(events, states, states[1:], strict=False):
            if decider.evolve(before, event) != after:
                raise AssertionError(f"evolve is not pure: {event} on {before} gives another state when it is folded again")
            if after is None:
                kind = type(event).__name__
                raise AssertionError(f"evolve gives None for {event}: it has no case for {kind}, or lacks a `return` there")
            self._stored(event, after)
        return states

    def _stored(self, event: E, state: S | None) -> None:
        registry = self.given.registry
        if registry is None:
            check_registered(event, state)
            return
        commit = NewCommit(id="a", at=datetime.now(UTC), events=(NewEvent(event),), state=state)
        stored = Commit(1, f"{self.given.decider.category}.a", registry.encode(commit), registry)
        if (found := stored.events[0].data) != event:
            raise AssertionError(f"{event} comes back as {found} when it was stored")
        if (found := stored.state) != state:
            raise AssertionError(f"the state {state} comes back as {found} when it was stored")


def _difference(command: object, *, expected: Sequence[object], decided: Sequence[object]) -> str:
    lines = [f"{command} gave other events than expected"]
    for index in range(max(len(expected), len(decided))):
        wanted, found = (events[index] if index < len(events) else "nothing" for events in (expected, decided))
        lines += [f"  {found}"] if wanted == found else [f"- {wanted}", f"+ {found}"]
    return "\n".join(lines)
