"""The promises of every implementation of `eventlog.port.EventLog`, as tests: each method is one promise.

A test module derives from the suite and gives it an empty log whose registry is `REGISTRY`:

    class TestMemoryLog(EventLogConformance):
        @pytest.fixture
        def log(self) -> EventLog:
            return MemoryLog(REGISTRY)
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import attrs
import pytest

from eventlog.commit import AggregateId, Appended, Commit, Context, NewCommit, NewEvent, Proposal
from eventlog.errors import Conflict, KeyTaken, LogTruncated, TooLarge
from eventlog.port import EventLog
from eventlog.registry import Registry
from eventlog.support.trace import Trace

T = TypeVar("T")

REGISTRY = Registry()
CATEGORY = "conformance.account"
SUBJECTS = f"{CATEGORY}.*"

_ids = itertools.count(1)


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


class EventLogConformance:
    """Derive from it and define the fixture `log`: an empty log whose registry is `REGISTRY`."""

    # Appending

    async def test_a_commit_is_stored_as_it_was_given(self, log: EventLog) -> None:
        """Events, state, contexts, id and time of a commit come back, in order, at the sequence that was answered."""
        proposal = deposit("a", 5, note="ärger \N{SNOWMAN} \r\n", events=3)
        assert await log.append(proposal) == Appended(1)
        commit = await log.at(1)
        assert commit is not None
        assert (commit.sequence, commit.aggregate, commit.id, commit.at) == (
            1,
            account("a"),
            proposal.commit.id,
            proposal.commit.at,
        )
        assert [event.data for event in commit.events] == [event.data for event in proposal.commit.events]
        assert [event.position.index for event in commit.events] == [0, 1, 2]
        assert {event.context for event in commit.events} == {Context(key="k", correlation="c")}
        assert commit.state == Account(15)

    async def test_a_commit_keeps_its_trace_however_it_is_read(self, log: EventLog) -> None:
        trace = Trace.begin()
        proposal = deposit("a")
        event = NewEvent(Deposited(1), Context(correlation="c", traceparent=str(trace)))
        traced = attrs.evolve(proposal, commit=attrs.evolve(proposal.commit, events=(event,)))
        at = (await log.append(traced)).sequence
        (followed,) = [commit for commit in await stored(log) if commit.sequence == at]
        read = [followed, await log.last(account("a")), await log.last(account("a"), consistent=True), await log.at(at)]
        read += [commit async for commit in log.history(account("a"))]
        assert [commit.trace for commit in read if commit is not None] == [trace] * 5
        assert followed.consequence == Context(correlation="c", causation=proposal.commit.id, traceparent=str(trace))
        plain = await log.append(deposit("b"))
        assert (await stored(log))[plain.sequence - 1].trace is None

    async def test_sequences_are_contiguous_from_one(self, log: EventLog) -> None:
        """Nothing takes a sequence number but a stored commit: no conflict, no repetition, no refusal."""
        first = deposit("a")
        assert (await log.append(first)).sequence == 1
        with pytest.raises(Conflict):
            await log.append(deposit("a"))
        await log.append(first)
        with pytest.raises(Conflict):
            await log.append_together([deposit("b"), deposit("a")])
        assert (await log.append(deposit("b"))).sequence == 2
        assert [commit.sequence for commit in await stored(log)] == [1, 2]

    @pytest.mark.parametrize("expected", [0, 1, 3, 99])
    async def test_a_guard_that_does_not_hold_is_a_conflict(self, log: EventLog, expected: int) -> None:
        """Too low, of another aggregate, or in the future: the commit is not stored."""
        await log.append(deposit("a"))
        await log.append(deposit("a", expected=1))
        await log.append(deposit("b"))
        with pytest.raises(Conflict, match=r"account\.a"):
            await log.append(deposit("a", expected=expected))
        assert len(await stored(log)) == 3

    async def test_a_repetition_gives_the_same_answer_however_much_later(self, log: EventLog) -> None:
        """The same commit again is `replayed` at its old sequence, also when its aggregate has gone on since."""
        first, second = deposit("a"), deposit("a", expected=1)
        await log.append(first)
        assert await log.append(first) == Appended(1, replayed=True)
        await log.append(second)
        await log.append(deposit("a", expected=2))
        assert await log.append(first) == Appended(1, replayed=True)
        assert await log.append(second) == Appended(2, replayed=True)
        assert len(await stored(log)) == 3

    async def test_a_commit_that_lost_its_place_stays_a_conflict(self, log: EventLog) -> None:
        """However often it is tried."""
        await log.append(deposit("a"))
        late = deposit("a")
        for _ in range(3):
            with pytest.raises(Conflict):
                await log.append(late)

    async def test_of_many_claims_of_a_fresh_aggregate_one_wins(self, log: EventLog) -> None:
        """All others get a conflict."""
        results = await asyncio.gather(*(log.append(deposit("a")) for _ in range(50)), return_exceptions=True)
        assert [type(result) for result in results].count(Appended) == 1
        assert [type(result) for result in results].count(Conflict) == 49
        assert len(await stored(log)) == 1

    async def test_writers_of_many_aggregates_do_not_disturb_each_other(self, log: EventLog) -> None:
        """40 writers, 5 commits each: every commit is stored once, each writer's in order."""

        async def write(name: str) -> list[int]:
            sequences = [0]
            for _ in range(5):
                sequences.append((await log.append(deposit(name, expected=sequences[-1]))).sequence)
            return sequences[1:]

        names = [f"a{number}" for number in range(40)]
        written = dict(zip(names, await asyncio.gather(*map(write, names)), strict=True))
        commits = await stored(log)
        assert len(commits) == 200
        for name in names:
            assert written[name] == [commit.sequence for commit in commits if commit.aggregate == account(name)]

    async def test_a_cancelled_caller_leaves_the_others_alone(self, log: EventLog) -> None:
        """Every third of 60 appends is given up: the others are stored once, the given up ones at most once."""
        proposals = [deposit(f"a{number}") for number in range(60)]
        tasks = [asyncio.create_task(log.append(proposal)) for proposal in proposals]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        by_id = {commit.id: commit.sequence for commit in await stored(log)}
        assert len(by_id) == (await log.head()).last
        for index, (proposal, result) in enumerate(zip(proposals, results, strict=True)):
            if index % 3:
                assert result == Appended(by_id[proposal.commit.id])

    async def test_what_is_too_large_is_refused_and_nothing_else(self, log: EventLog) -> None:
        """A commit above a mebibyte, alone or among others: no commit is stored, and the log works on."""
        large = deposit("a", note="x" * 1024**2)
        with pytest.raises(TooLarge):
            await log.append(large)
        with pytest.raises(TooLarge):
            await log.append_together([deposit("b"), large])
        assert await log.append(deposit("a", note="x" * 900_000)) == Appended(1)

    async def test_only_registered_types_are_stored(self, log: EventLog) -> None:
        """ValueError before anything is sent."""
        proposal = deposit("a")
        with pytest.raises(ValueError, match="not registered"):
            await log.append(attrs.evolve(proposal, commit=attrs.evolve(proposal.commit, state="no state")))
        assert (await log.head()).last == 0

    # Appending together

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

    # Appending in a row

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
        chance = random.Random(7)  # noqa: S311 - chosen by a seed, not a secret
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


__all__ = [
    "CATEGORY",
    "REGISTRY",
    "SUBJECTS",
    "Account",
    "Deposited",
    "EventLogConformance",
    "account",
    "deposit",
    "first_of",
    "in_row",
    "stored",
]
