"""The commits that are not in the tables though these are past them: their aggregates are parked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from eventlog import Commit
from projections.errors import AggregateParked
from projections.store import KEYS, Parked


async def check_applied(sequence: int, parked: Collection[Parked], commit_at: Callable[[int], Awaitable[Commit | None]]) -> None:
    """See that a commit which the tables have passed is in them. Raises AggregateParked if its aggregate is parked.

    `parked` are the parked aggregates of the tables. `commit_at` gives the commit of a sequence, or None if it is not known: then
    the commit may be of any aggregate.
    """
    waiting = [one for one in parked if one.projection != KEYS.name and one.sequence <= sequence <= one.last]
    commit = await commit_at(sequence) if waiting else None
    for one in waiting:
        if commit is None or commit.subject == one.subject:
            raise AggregateParked(
                f"sequence {sequence} is stored and not in the tables: {one.subject} is parked by projection "
                f"{one.projection!r} since sequence {one.sequence}: {one.error}. `projections parked` lists it, "
                "`projections unpark` applies what waits"
            )


def note_of(parked: Collection[Parked]) -> str | None:
    """Return what the health of a service tells about parked aggregates, or None without one."""
    if not parked:
        return None
    first = min(parked, key=lambda one: one.sequence)
    return (
        f"read model: {len(parked)} parked, {sum(one.waiting for one in parked)} commits wait; the first: {first.subject} of "
        f"projection {first.projection!r} at sequence {first.sequence}: {first.error}"
    )
