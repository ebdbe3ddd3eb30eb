"""Promises about commits of several aggregates that are appended together."""

from __future__ import annotations

import asyncio

import pytest

from eventlog.commit import Appended
from eventlog.errors import Conflict
from eventlog.port import EventLog
from tests.support.log.conformance.accounts import deposit, stored


class BatchPromises:
    """A batch is stored whole, or no commit of it is stored."""

    async def test_commits_appended_together_stand_in_a_row(self, log: EventLog) -> None:
        """In the order of the proposals, each under its own sequence."""
        await log.append(deposit("b"))
        proposals = [deposit("a"), deposit("b", expected=1), deposit("c")]
        assert await log.append_together(proposals) == [Appended(2), Appended(3), Appended(4)]
        assert [commit.id for commit in await stored(log)][1:] == [proposal.commit.id for proposal in proposals]

    @pytest.mark.parametrize("place", [0, 1, 2])
    async def test_together_means_all_or_none(self, log: EventLog, place: int) -> None:
        """One guard that does not hold, in any position, keeps all of them out."""
        await log.append(deposit("a"))
        proposals = [deposit("b"), deposit("c")]
        proposals.insert(place, deposit("a"))
        with pytest.raises(Conflict):
            await log.append_together(proposals)
        assert len(await stored(log)) == 1

    async def test_a_repetition_together_gives_the_same_answers(self, log: EventLog) -> None:
        """Also when one of the aggregates has gone on since."""
        proposals = [deposit("a"), deposit("b"), deposit("c")]
        await log.append_together(proposals)
        replayed = [Appended(sequence, replayed=True) for sequence in (1, 2, 3)]
        assert await log.append_together(proposals) == replayed
        await log.append(deposit("b", expected=2))
        assert await log.append_together(proposals) == replayed
        assert len(await stored(log)) == 4

    async def test_a_thousand_commits_can_be_appended_together(self, log: EventLog) -> None:
        """And not one more. An aggregate comes once only. An empty list has no effect."""
        appended = await log.append_together([deposit(f"a{number}") for number in range(1000)])
        assert [item.sequence for item in appended] == list(range(1, 1001))
        with pytest.raises(ValueError, match="1000"):
            await log.append_together([deposit(f"b{number}") for number in range(1001)])
        with pytest.raises(ValueError, match="once"):
            await log.append_together([deposit("c"), deposit("c")])
        assert await log.append_together([]) == []
        assert await log.append_together([deposit("c")]) == [Appended(1001)]

    async def test_batches_and_single_appends_mix(self, log: EventLog) -> None:
        """20 batches of 3 and 20 single appends at once, all stored."""
        batches = [log.append_together([deposit(f"b{number}-{part}") for part in range(3)]) for number in range(20)]
        singles = [log.append(deposit(f"s{number}")) for number in range(20)]
        await asyncio.gather(*batches, *singles)
        commits = await stored(log)
        assert len({commit.subject for commit in commits}) == len(commits) == 80
