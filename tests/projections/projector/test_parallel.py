"""The rows of commits, derived in parts and merged, equal the rows derived from the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs
import pytest

from eventlog import Commit
from pantry import readmodel as pantry
from projections.model import Column, Projection, Put, ReadModel, Table
from projections.parallel.parts import answer_to, derived_from, given, merged, request_of, split
from projections.projector.derive import ChangeSet, derive
from projections.projector.parking import Parking
from projections.store import Parked, Place
from tests.projections.projector.test_parallel_kill import troubled_log
from tests.support.pantry.stocked import stocked_log
from tests.support.readside import ledger

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NOTES = Table("notes", (Column("kind"), Column("account"), Column("size", "integer")), key=("kind",))
SHARED = attrs.evolve(
    ledger.MODEL,
    projections=(
        *ledger.MODEL.projections,
        Projection("notes", 1, (NOTES,), {ledger.CATEGORY: lambda c: [Put(NOTES, (e.type, c.subject, 2**70)) for e in c.events]}),
    ),
)
"""With rows that many aggregates write, and numbers that no database can hold."""


def in_parts(
    model: ReadModel, reached: Mapping[str, int], parked: Mapping[Place, Parked], commits: Sequence[Commit], count: int
) -> ChangeSet:
    requests = [request_of(part, given(reached, parked, part), NOW) for part in split(commits, count) if part]
    return merged([derived_from(answer_to(model, request)) for request in requests])


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64])
async def test_parts_come_to_what_the_whole_does(count: int) -> None:
    """Every change is in its place, with counts, keys and parked aggregates. Also if a projection has applied some commits, and
    with aggregates that were parked before.
    """
    for model, log in (
        (SHARED, await troubled_log(count)),
        (pantry.MODEL, await stocked_log(products=60, movements=10, categories=7)),
    ):
        commits = [commit async for some in log.follow(after=0, until=(await log.head()).last) for commit in some]
        first, second = commits[: len(commits) // 2], commits[len(commits) // 2 :]
        reached = {model.projections[0].name: len(commits) // 4}
        whole = derive(model.projections, reached, first, Parking({}, NOW))
        assert in_parts(model, reached, {}, first, count) == whole
        parked = {place: one for place, one in whole.parked.items() if one is not None}
        assert bool(parked) == (model is SHARED)
        reached = {projection.name: len(first) for projection in model.projections}
        assert in_parts(model, reached, parked, second, count) == derive(model.projections, reached, second, Parking(parked, NOW))
