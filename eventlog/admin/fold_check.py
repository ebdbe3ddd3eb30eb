"""Comparison of the state in a commit with a fold of its events: the state is a cache, and the events are the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from eventlog.commit import Commit
from eventlog.errors import EventLogError, StateLost

Fold = Callable[[Iterable[Any], Any], Any]
"""`Decider.fold` of a category: events and the state before them give the state after them."""


def contradiction(commit: Commit, before: Commit | None, fold: Fold) -> str:
    """The difference between the state of a commit and its events, in words; empty if there is none.

    `before` is the previous commit of the aggregate, None for the first one. Tombstones, and states after a lost commit, are not
    compared.
    """
    if commit.lost is not None or not _knows_state(before):
        return ""
    try:
        state = fold([event.data for event in commit.events], _state_of(before))
        return "" if state == commit.state else _difference(state, commit.state)
    except EventLogError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - events that do not fit the state before them are a finding
        return f"its events cannot be applied to the state before them: {error!r}"


def _knows_state(before: Commit | None) -> bool:
    """Whether the state before a commit is known: after a tombstone in the middle of an aggregate it is not."""
    return before is None or (lost := before.lost) is None or lost.replaces is None


def _state_of(before: Commit | None) -> Any:
    try:
        return None if before is None else before.state
    except StateLost:  # the only commit of the aggregate was lost
        return None


def _difference(folded: Any, stored: Any) -> str:
    ours, theirs = msgspec.to_builtins(folded), msgspec.to_builtins(stored)
    names = [name for name in theirs if ours.get(name) != theirs[name]] if isinstance(ours, dict) else []
    says = "; ".join(f"its events give {name} {ours.get(name)!r}, its state says {theirs[name]!r}" for name in names)
    return says or "its state is not what its events give"  # prose: allow is-no
