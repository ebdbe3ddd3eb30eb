"""Promises about reading one aggregate, following the log, and the log itself."""

from __future__ import annotations

import asyncio

import pytest

from eventlog.errors import LogTruncated
from eventlog.port import EventLog
from tests.support.log.conformance.accounts import REGISTRY, Account, account, deposit, first_of


class ReadingPromises:
    """A reader gets each commit once and in order."""

    # Reading one aggregate

    async def test_the_last_commit_is_the_aggregate(self, log: EventLog) -> None:
        """Its state and sequence, by whichever read; None if there is none."""
        assert await log.last(account("a")) is None
        assert await log.last(account("a"), consistent=True) is None
        await log.append(deposit("a", 1))
        await log.append(deposit("b", 2))
        await log.append(deposit("a", 3, expected=1))
        consistent = await log.last(account("a"), consistent=True)
        assert consistent is not None
        assert (consistent.sequence, consistent.state) == (3, Account(3))
        assert consistent == await log.at(3)

    @pytest.mark.parametrize(("up_to", "expected"), [(0, None), (1, None), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (10**6, 4)])
    async def test_the_last_commit_up_to_a_sequence(self, log: EventLog, up_to: int, expected: int | None) -> None:
        """The aggregate as it was then, exactly; beyond the end of the log it is the last one."""
        for name, guard in [("b", 0), ("a", 0), ("b", 1), ("a", 2), ("b", 3), ("b", 5)]:
            await log.append(deposit(name, expected=guard))
        found = await log.last(account("a"), up_to=up_to)
        assert (None if found is None else found.sequence) == expected

    async def test_there_is_nothing_at_a_sequence_that_is_not_there(self, log: EventLog) -> None:
        """Before the first, and after the last."""
        await log.append(deposit("a"))
        assert [await log.at(sequence) for sequence in (-1, 0, 2, 10**9)] == [None] * 4

    async def test_the_history_of_an_aggregate(self, log: EventLog) -> None:
        """All of its commits and no others, in order, above a sequence."""
        expected = 0
        for number in range(6):
            expected = (await log.append(deposit("a", number, expected=expected))).sequence
            await log.append(deposit(f"b{number}"))
        assert [commit.sequence async for commit in log.history(account("a"))] == [1, 3, 5, 7, 9, 11]
        assert [commit.sequence async for commit in log.history(account("a"), after=5)] == [7, 9, 11]
        assert [commit.state async for commit in log.history(account("a"), after=8)] == [Account(4), Account(5)]
        assert [commit async for commit in log.history(account("a"), after=11)] == []
        assert [commit async for commit in log.history(account("none"))] == []

    async def test_a_long_history(self, log: EventLog) -> None:
        """600 commits: more than any implementation reads at once."""
        for number in range(600):
            await log.append(deposit("a", number, expected=number))
        history = [commit async for commit in log.history(account("a"))]
        assert [commit.sequence for commit in history] == list(range(1, 601))

    # Following the log

    async def test_following_until_a_sequence_ends_there(self, log: EventLog) -> None:
        """Every commit above `after` up to `until`, once, in order, in lists of at most `batch`; at once if none is left."""
        await log.append_together([deposit(f"a{number}") for number in range(50)])
        lists = [commits async for commits in log.follow(after=10, until=40, batch=7)]
        assert [commit.sequence for commits in lists for commit in commits] == list(range(11, 41))
        assert max(map(len, lists)) <= 7
        assert min(map(len, lists)) >= 1
        async with asyncio.timeout(5):
            assert [commits async for commits in log.follow(after=50, until=50)] == []
            assert [commits async for commits in log.follow(after=50, until=20)] == []

    async def test_following_goes_on_with_what_is_appended(self, log: EventLog) -> None:
        """Two readers, from different places, each get all."""
        await log.append(deposit("a"))
        reading = asyncio.gather(first_of(log.follow(after=0), 21), first_of(log.follow(after=1), 20))
        for number in range(20):
            await log.append(deposit(f"b{number}"))
        all_, later = await reading
        assert [commit.sequence for commit in all_] == list(range(1, 22))
        assert later == all_[1:]

    async def test_following_one_aggregate(self, log: EventLog) -> None:
        """Only its commits, in order; it ends when the log has passed `until`."""
        for number in range(10):
            await log.append_together([deposit("a", expected=2 * number - 1 if number else 0), deposit(f"b{number}")])
        lists = log.follow(after=0, until=20, aggregate=account("a"))
        async with asyncio.timeout(10):
            assert [commit.sequence async for commits in lists for commit in commits] == list(range(1, 20, 2))

    async def test_following_from_behind_the_end_is_refused(self, log: EventLog) -> None:
        """A reader that has seen more than there is must get an error."""
        await log.append(deposit("a"))
        with pytest.raises(LogTruncated):
            await first_of(log.follow(after=2), 1)

    # The log itself

    async def test_the_head_of_the_log(self, log: EventLog) -> None:
        """Its first and last sequence, and an incarnation that stays."""
        empty = await log.head()
        assert (empty.first, empty.last) == (1, 0)
        await log.append_together([deposit("a"), deposit("b")])
        head = await log.head()
        assert (head.first, head.last, head.incarnation) == (1, 2, empty.incarnation)
        assert head.incarnation

    async def test_it_knows_its_registry(self, log: EventLog) -> None:
        """Readers of the log decode with it."""
        assert log.registry is REGISTRY
