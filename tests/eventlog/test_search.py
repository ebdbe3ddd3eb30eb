"""Looking for events: every page in order, none twice, none left out, and never more read than the bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog import AggregateId, Context, NewCommit, NewEvent
from eventlog.commit import Appended, Proposal
from eventlog.history import EventFilter, Page, search_events
from eventlog.testing.memory import MemoryLog
from tests.support.log.counter import CATEGORY, REGISTRY, Added, Counter

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


async def filled(*commits: tuple[str, int]) -> MemoryLog:
    """A log with commits: name of the counter, and how many events."""
    log = MemoryLog(REGISTRY)
    last: dict[str, Appended] = {}
    for sequence, (name, events) in enumerate(commits, 1):
        commit = NewCommit(
            id=f"c{sequence}",
            at=AT,
            events=tuple(
                NewEvent(Added(amount=sequence, total=index, by=f"Büro {name}"), Context(correlation=f"r{sequence}"))
                for index in range(events)
            ),
            state=Counter(total=sequence),
        )
        before = last.get(name, Appended(0))
        proposal = Proposal(aggregate=AggregateId(CATEGORY, name), expected=before.sequence, commit=commit, prev=before.digest)
        last[name] = await log.append(proposal)
    return log


async def pages(log: MemoryLog, wanted: EventFilter, most: int) -> list[Page]:
    found = []
    while True:
        page = await search_events(log, wanted, most=most)
        found.append(page)
        if page.next is None:
            return found
        wanted = attrs.evolve(wanted, last=page.next) if wanted.newest else attrs.evolve(wanted, first=page.next)


COMMITS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=30)
CONDITIONS: dict[str, tuple[dict[str, Any], Callable[[str, int], bool]]] = {
    "all": ({}, lambda name, _: True),
    "one counter": ({"aggregate": AggregateId(CATEGORY, "a")}, lambda name, _: name == "a"),
    "a text": ({"text": "BÜRO B"}, lambda name, _: name == "b"),
    "a type": ({"types": frozenset({"Added"})}, lambda name, _: True),
    "another type": ({"types": frozenset({"Removed"})}, lambda name, _: False),
    "a category": ({"category": CATEGORY}, lambda name, _: True),
    "another category": ({"category": "test.other"}, lambda name, _: False),
    "a part": ({"first": 3, "last": 9}, lambda _, sequence: 3 <= sequence <= 9),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(deadline=None, max_examples=40)
@given(COMMITS, st.booleans(), st.integers(1, 8), st.integers(1, 12))
async def test_the_pages_together_are_what_is_wanted_in_order(
    condition: str, commits: list[tuple[str, int]], newest: bool, limit: int, most: int
) -> None:
    given_, fits = CONDITIONS[condition]
    log = await filled(*commits)
    read = await pages(log, EventFilter(newest=newest, limit=limit, **given_), most)
    found = [str(record.position) for page in read for record in page.records]
    expected = [
        f"{sequence}.{index}" if index else str(sequence)
        for sequence, (name, events) in enumerate(commits, 1)
        if fits(name, sequence)
        for index in range(events)
    ]
    assert found == (expected[::-1] if newest else expected)
    assert all(len(page.records) < limit + 3 for page in read)
    looked = [(page.first, page.last) for page in read]
    ends = looked if not newest else looked[::-1]
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ends)), "the parts are beside each other"


async def test_a_page_reads_so_much_and_no_more() -> None:
    log = await filled(*[("a", 1)] * 50, ("b", 1), *[("a", 1)] * 50)
    page = await search_events(log, EventFilter(text="büro b", newest=False), most=40)
    assert (page.records, page.first, page.last, page.next, page.end) == ((), 1, 40, 41, 101)
    page = await search_events(log, EventFilter(text="büro b", newest=False, first=41), most=40)
    assert ([str(record.position) for record in page.records], page.next) == (["51"], 81)


async def test_a_record_has_what_is_stored() -> None:
    log = await filled(("a", 1))
    (record,) = (await search_events(log, EventFilter())).records
    assert (record.aggregate, record.type, record.version, record.at) == ("test.counter.a", "Added", 1, AT)
    assert json.loads(bytes(record.data)) == {"amount": 1, "total": 0, "by": "Büro a"}
    assert (record.commit, record.context.correlation, record.problem) == ("c1", "r1", None)
