"""The accounts that the suite stores: their registry, commits of them, and readers of a log."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import attrs

from eventlog.commit import AggregateId, Appended, Commit, Context, NewCommit, NewEvent, Proposal, Registry
from eventlog.port import EventLog

T = TypeVar("T")
REGISTRY = Registry()
CATEGORY = "conformance.account"
SUBJECTS = f"{CATEGORY}.*"
_ids = itertools.count(1)
ANY_DIGEST = "A" * 22
"""The digest of no commit: a log does not compare it."""


@REGISTRY.event("deposited")
@attrs.frozen
class Deposited:
    """Money came in."""

    amount: int
    note: str = ""


@REGISTRY.state(CATEGORY)
@attrs.frozen
class Account:
    """Money that is there."""

    balance: int


def account(name: str) -> AggregateId:
    """The aggregate of that name."""
    return AggregateId(CATEGORY, name)


def deposit(
    name: str, amount: int = 1, *, expected: int = 0, note: str = "", events: int = 1, key: str | None = None
) -> Proposal:
    """A commit of `events` events that no other writer proposes."""
    return Proposal(
        key=key,
        aggregate=account(name),
        expected=expected,
        prev=ANY_DIGEST if expected else None,
        commit=NewCommit(
            id=f"conformance-{next(_ids)}",
            at=datetime.now(UTC),
            events=tuple(NewEvent(Deposited(amount, note), Context(key="k", correlation="c")) for _ in range(events)),
            state=Account(amount * events),
        ),
    )


async def stored(log: EventLog) -> list[Commit]:
    """All that is in the log, in order."""
    head = await log.head()
    return [commit async for commits in log.follow(after=head.first - 1, until=head.last) for commit in commits]


async def first_of(lists: AsyncIterator[Sequence[T]], count: int) -> list[T]:
    """The first items of `follow`; 10 s at most."""
    found: list[T] = []
    try:
        async with asyncio.timeout(10):
            async for some in lists:
                found += some
                if len(found) >= count:
                    break
    finally:
        if isinstance(lists, AsyncGenerator):
            await lists.aclose()
    return found


async def in_row(log: EventLog, proposals: Sequence[Proposal]) -> list[Appended]:
    """Store commits of one aggregate as a caller of `append_in_row` does: the rest again, until all are stored."""
    found: list[Appended] = []
    while left := proposals[len(found) :]:
        if found:
            left = [attrs.evolve(one, expected=found[-1].sequence, prev=found[-1].digest) for one in left]
        found += await log.append_in_row(left)
    return found
