"""Promises about appending one commit: guards, repetitions, many writers, refusals."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from eventlog.commit import Appended, Context, NewEvent
from eventlog.errors import Conflict, TooLarge
from eventlog.port import EventLog
from eventlog.support.tracing import Trace
from tests.support.log.conformance.accounts import Account, Deposited, account, deposit, stored


class AppendPromises:
    """A commit is stored once and as it was given, or not at all."""

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
