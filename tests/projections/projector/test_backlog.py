"""The read-ahead is bounded, in commits and in bytes. It loses no commit and keeps their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventlog import Commit
from projections.projector import reading
from projections.projector.reading import Backlog
from tests.support.readside.ledger import REGISTRY


def commits(first: int, last: int, size: int = 1) -> list[Commit]:
    return [Commit(sequence, "ledger.account.a", b"x" * size, REGISTRY) for sequence in range(first, last + 1)]


def sequences(taken: Sequence[Commit]) -> list[int]:
    return [commit.sequence for commit in taken]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_put_is_gathered_and_taken_at_once() -> None:
    gathered = Backlog(10)
    await gathered.put(commits(1, 3))
    await gathered.put(commits(4, 9))
    assert sequences(await gathered.take()) == list(range(1, 10))


@pytest.mark.parametrize(("waiters", "first"), [([], [1, 2]), (["a request"], [1])])
async def test_ready_work_goes_before_a_batch_that_no_request_waits_for(waiters: list[str], first: list[int]) -> None:
    gathered = Backlog(10, waiters=waiters)
    await gathered.put(commits(1, 1))
    taking = asyncio.create_task(gathered.take())
    await settle()
    await gathered.put(commits(2, 2))
    assert sequences(await taking) == first


async def test_a_batch_does_not_wait_for_ready_work_without_end() -> None:
    gathered = Backlog(10, waiters=[])
    await gathered.put(commits(1, 1))
    taking, turns = asyncio.create_task(gathered.take()), 0
    while not taking.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns < 100
    assert sequences(await taking) == [1]


async def test_who_reads_too_fast_waits_until_some_is_taken() -> None:
    """A list that is larger than the bound goes through alone."""
    gathered = Backlog(10)
    await gathered.put(commits(1, 8))
    second = asyncio.create_task(gathered.put(commits(9, 30)))
    await settle()
    assert not second.done()
    assert sequences(await gathered.take()) == list(range(1, 9))
    await second
    assert sequences(await gathered.take()) == list(range(9, 31))


async def test_large_commits_fill_it_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    gathered = Backlog(100)
    await gathered.put(commits(1, 2, size=600))
    third = asyncio.create_task(gathered.put(commits(3, 3)))
    await settle()
    assert not third.done()
    assert sequences(await gathered.take()) == [1]
    await third
    assert sequences(await gathered.take()) == [2, 3]


async def test_a_replay_may_gather_more_and_afterwards_less() -> None:
    gathered = Backlog(100)
    gathered.most_bytes = 2000
    await gathered.put(commits(1, 4, size=500))
    assert sequences(await gathered.take()) == [1, 2, 3, 4]
    gathered.most_bytes = 1000
    await gathered.put(commits(5, 8, size=500))
    assert sequences(await gathered.take()) == [5, 6]
    assert sequences(await gathered.take()) == [7, 8]


async def test_who_takes_waits_for_the_first_commit() -> None:
    gathered = Backlog(10)
    taking = asyncio.create_task(gathered.take())
    await settle()
    assert not taking.done()
    await gathered.put(commits(1, 1))
    assert sequences(await taking) == [1]


@pytest.mark.parametrize("error", [None, ValueError("broken")])
async def test_the_end_comes_after_everything_that_was_put(error: Exception | None) -> None:
    """The first end counts."""
    gathered = Backlog(10)
    await gathered.put(commits(1, 2))
    gathered.end(error)
    gathered.end(KeyError("later"))
    assert sequences(await gathered.take()) == [1, 2]
    if error is None:
        assert await gathered.take() == ()
    else:
        with pytest.raises(ValueError, match="broken"):
            await gathered.take()


async def test_the_end_wakes_who_waits() -> None:
    gathered = Backlog(10)
    taking = asyncio.create_task(gathered.take())
    await settle()
    gathered.end()
    assert await taking == ()
