"""Promises about commits of one aggregate that are appended in a row."""

from __future__ import annotations

import asyncio
import random

import attrs
import pytest

from eventlog.commit import Appended
from eventlog.errors import Conflict, KeyTaken, TooLarge
from eventlog.port import EventLog
from tests.support.log.conformance.accounts import account, deposit, in_row, stored


class RowPromises:
    """A row is stored from its first commit on, each bound to the one before it."""

    async def test_commits_in_a_row_follow_each_other(self, log: EventLog) -> None:
        """Each is bound to the one before it, by place and by digest, and the next append to the last one, however it is read."""
        first = await log.append(deposit("a"))
        await log.append(deposit("b"))
        row = [deposit("a", number, expected=1) for number in range(20)]
        appended = await in_row(log, [attrs.evolve(one, prev=first.digest) for one in row])
        assert appended == [Appended(sequence) for sequence in range(3, 23)]
        last = attrs.evolve(deposit("a", expected=22), prev=appended[-1].digest)
        await log.append(last)
        history = [commit async for commit in log.history(account("a"))]
        assert [commit.id for commit in history[1:-1]] == [proposal.commit.id for proposal in row]
        followed = [commit for commit in await stored(log) if commit.aggregate == account("a")]
        single = [await log.at(commit.sequence) for commit in history]
        for read in (history, followed, [commit for commit in single if commit is not None]):
            assert [commit.prev for commit in read] == [None, *(commit.digest for commit in read[:-1])]
            assert [commit.guard for commit in read] == [0, *(commit.sequence for commit in read[:-1])]

    @pytest.mark.parametrize("expected", [0, 2, 99])
    async def test_a_row_whose_guard_does_not_hold_is_a_conflict(self, log: EventLog, expected: int) -> None:
        """No commit of it is stored."""
        await log.append(deposit("a"))
        await log.append(deposit("b"))
        with pytest.raises(Conflict, match=r"account\.a"):
            await log.append_in_row([deposit("a", expected=expected) for _ in range(20)])
        assert len(await stored(log)) == 2

    async def test_a_row_again_gives_the_same_answers(self, log: EventLog) -> None:
        """Also when the aggregate has gone on since."""
        row = [deposit("a", number) for number in range(20)]
        appended = await in_row(log, row)
        await log.append(deposit("a", expected=20))
        assert await in_row(log, row) == [attrs.evolve(one, replayed=True) for one in appended]
        assert len(await stored(log)) == 21

    async def test_of_two_rows_at_once_one_is_stored(self, log: EventLog) -> None:
        """And of the other one not a single commit."""
        rows = [[deposit("a") for _ in range(20)] for _ in range(2)]
        results = await asyncio.gather(*(log.append_in_row(row) for row in rows), return_exceptions=True)
        won = [index for index, result in enumerate(results) if not isinstance(result, Conflict)]
        assert len(won) == 1
        ids = [proposal.commit.id for proposal in rows[won[0]]]
        there = [commit.id for commit in await stored(log)]
        assert there == ids[: len(there)]

    async def test_a_key_is_stored_once_whatever_row_it_is_in(self, log: EventLog) -> None:
        """Rows with random keys, compared with a model: a row is stored up to a key that is taken, which is refused."""
        chance = random.Random(7)
        used: dict[str, int] = {}
        heads: dict[str, Appended] = {}
        for number in range(12):
            name = f"a{number % 3}"
            keys = [f"key-{chance.randrange(120)}" if chance.random() < 0.9 else None for _ in range(chance.randint(1, 24))]
            left = [deposit(name, key=key) for key in dict.fromkeys(keys)]
            while left:
                head = heads.get(name, Appended(0))
                row = [attrs.evolve(one, expected=head.sequence, prev=head.digest) for one in left]
                try:
                    appended = await log.append_in_row(row)
                except KeyTaken as error:
                    taken = left.pop(0).key
                    assert (taken, error.sequence) in used.items()  # noqa: PT017 - it is not always raised
                    continue
                for one, proposal in zip(appended, row, strict=False):
                    assert proposal.key not in used
                    if proposal.key is not None:
                        used[proposal.key] = one.sequence
                heads[name] = appended[-1]
                left = left[len(appended) :]
        assert len(used) > 50
        for commits in [[commit async for commit in log.history(account(name))] for name in heads]:
            assert [commit.prev for commit in commits] == [None, *(commit.digest for commit in commits[:-1])]

    async def test_a_commit_that_is_too_large_ends_its_row(self, log: EventLog) -> None:
        """Those before it are stored, its own error is the caller's."""
        row = [deposit("a", note="x" * 1024**2 if number == 14 else "") for number in range(20)]
        with pytest.raises(TooLarge):
            await in_row(log, row)
        assert [commit.id for commit in await stored(log)] == [proposal.commit.id for proposal in row[:14]]

    async def test_rows_of_many_aggregates_and_other_appends_mix(self, log: EventLog) -> None:
        """8 rows of 12, 8 batches of 3 and 20 single appends at once, all stored, each row in order."""
        rows = {f"r{number}": [deposit(f"r{number}") for _ in range(12)] for number in range(8)}
        batches = [log.append_together([deposit(f"b{number}-{part}") for part in range(3)]) for number in range(8)]
        singles = [log.append(deposit(f"s{number}")) for number in range(20)]
        await asyncio.gather(*(in_row(log, row) for row in rows.values()), *batches, *singles)
        commits = await stored(log)
        assert len(commits) == len({commit.id for commit in commits}) == 140
        for name, row in rows.items():
            of_row = [commit for commit in commits if commit.aggregate == account(name)]
            assert [commit.id for commit in of_row] == [proposal.commit.id for proposal in row]
            assert [commit.guard for commit in of_row] == [0, *(commit.sequence for commit in of_row[:-1])]

    async def test_a_row_is_of_one_aggregate(self, log: EventLog) -> None:
        """ValueError for two, and for none."""
        with pytest.raises(ValueError, match="one aggregate"):
            await log.append_in_row([deposit("a"), deposit("b")])
        with pytest.raises(ValueError, match="one aggregate"):
            await log.append_in_row([])
