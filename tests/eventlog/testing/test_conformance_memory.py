"""The log in memory keeps the promises of the port, and plays the faults that it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventlog.commit import Appended, Proposal
from eventlog.errors import Conflict, IncarnationChanged, OutcomeUnknown, SequenceGap, Unavailable
from eventlog.port import EventLog
from eventlog.testing.memory import MemoryLog
from tests.support.log.conformance import REGISTRY, EventLogConformance, deposit, first_of


class TestMemoryLog(EventLogConformance):
    @pytest.fixture
    def log(self) -> EventLog:
        return MemoryLog(REGISTRY)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(REGISTRY)


async def test_a_lost_answer_can_be_played(log: MemoryLog) -> None:
    """Stored, and the caller does not hear of it: once."""
    proposal = deposit("a")
    log.lose_next_answer()
    with pytest.raises(OutcomeUnknown):
        await log.append(proposal)
    assert await log.append(proposal) == Appended(1, replayed=True)


async def test_a_refusal_can_be_played(log: MemoryLog) -> None:
    """The append is not stored. It raises the given error once."""
    log.refuse_next(Unavailable("away"))
    with pytest.raises(Unavailable, match="away"):
        await log.append_together([deposit("a"), deposit("b")])
    assert await log.append(deposit("a")) == Appended(1)


async def test_another_writer_can_be_first(log: MemoryLog) -> None:
    """The hook sees what is about to be appended, and appends before it."""

    async def first(proposals: Sequence[Proposal]) -> None:
        log.before = None
        await log.append(deposit(proposals[0].aggregate.id))

    log.before = first
    with pytest.raises(Conflict):
        await log.append(deposit("a"))


async def test_slowness_beyond_the_deadline_is_told_apart(log: MemoryLog) -> None:
    """Before it is stored: surely not stored. Afterwards: unknown."""

    async def never(_: Sequence[Proposal]) -> None:
        await asyncio.Event().wait()

    log.before = never
    with pytest.raises(Unavailable) as error:
        await log.append(deposit("a"), deadline=0.01)
    assert not isinstance(error.value, OutcomeUnknown)
    log.before, log.after = None, never
    with pytest.raises(OutcomeUnknown):
        await log.append(deposit("a"), deadline=0.01)
    assert (await log.head()).last == 1


async def test_a_log_created_anew_is_noticed_by_its_readers(log: MemoryLog) -> None:
    """Its incarnation differs, and its followers stop."""
    await log.append(deposit("a"))
    before = await log.head()
    reading = asyncio.create_task(first_of(log.follow(after=0), 2))
    await asyncio.sleep(0)
    await log.create_anew()
    with pytest.raises(IncarnationChanged):
        await reading
    after = await log.head()
    assert (after.last, after.incarnation != before.incarnation) == (0, True)


async def test_a_damaged_record_is_missing_from_its_aggregate_and_named_where_all_are_wanted(log: MemoryLog) -> None:
    """A reader that has no end gets the later ones, since each has the state."""
    first = await log.append(deposit("a"))
    await log.append(deposit("b"))
    await log.append(deposit("a", expected=first.sequence))
    log.damage(1)
    assert [commit.sequence for commit in await anext(log.follow(after=0, aggregate=deposit("a").aggregate))] == [3]
    assert [commit.sequence for commit in await anext(log.follow(after=0, until=3, aggregate=deposit("b").aggregate))] == [2]
    with pytest.raises(SequenceGap, match="sequence 1 cannot be read"):
        await anext(log.follow(after=0, until=3, aggregate=deposit("a").aggregate))
