"""A small aggregate for tests of the core: a counter that never goes below zero."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from eventlog import Decider, Registry

REGISTRY = Registry()
CATEGORY = "test.counter"


class Short(Exception):
    """The counter would go below zero."""


@REGISTRY.event("Added")
@attrs.frozen(kw_only=True)
class Added:
    """The counter changed by `amount`, to `total`; `by` names the command."""

    amount: int
    total: int
    by: str = ""


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Counter:
    """The counter's value, and how often it changed."""

    total: int = 0
    changes: int = 0


@attrs.frozen(kw_only=True)
class Add:
    """Change the counter. 0 has no effect."""

    amount: int
    by: str = ""


def decide(command: Add, state: Counter | None) -> Sequence[Added]:
    """Refuse what would go below zero."""
    total = (state.total if state else 0) + command.amount
    if total < 0:
        raise Short(f"{total} is below zero")
    return [Added(amount=command.amount, total=total, by=command.by)] if command.amount else []


def evolve(state: Counter | None, event: Added) -> Counter:
    """Count."""
    return Counter(total=event.total, changes=(state.changes if state else 0) + 1)


COUNTER: Decider[Counter, Add, Added] = Decider(CATEGORY, decide, evolve, initial=None)
