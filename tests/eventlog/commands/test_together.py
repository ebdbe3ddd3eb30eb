"""Commands on several aggregates that are stored together."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from eventlog import (
    AggregateId,
    Conflict,
    Context,
    Decider,
    Unavailable,
)
from eventlog.commands import Commands, CommandStep
from eventlog.support.chain import GUARD
from tests.eventlog.commands.counters import ONE, Slow, add, history
from tests.support.log.counter import COUNTER, Add, Added, Counter, Short


class TestTogether:
    @staticmethod
    def move(amount: int) -> list[CommandStep[Any, Any, Any]]:
        return [CommandStep(COUNTER, "one", Add(amount=-amount)), CommandStep(COUNTER, "two", Add(amount=amount))]

    async def test_all_or_none(self, commands: Commands, log: Slow) -> None:
        await add(commands, 5)
        outcomes = await commands.execute_together(self.move(3))
        assert [outcome.state.total for outcome in outcomes] == [2, 3]
        with pytest.raises(Short):
            await commands.execute_together(self.move(3))
        assert [len(await history(log, AggregateId("test.counter", id_))) for id_ in ("one", "two")] == [2, 1]

    async def test_the_sum_is_the_same_after_every_commit_under_contention(self, log: Slow) -> None:
        processes = [Commands(log) for _ in range(3)]
        await add(processes[0], 50)
        moves = [one.execute_together(self.move(amount)) for one in processes for amount in (1, 2, 3, 4)]
        answers = await asyncio.gather(*moves, return_exceptions=True)
        assert all(isinstance(answer, (list, Conflict)) for answer in answers)
        moved = sum(answer[1].events[0].amount for answer in answers if isinstance(answer, list))
        one, two = await log.last(ONE), await log.last(AggregateId("test.counter", "two"))
        assert one is not None
        assert two is not None
        assert (one.state.total, two.state.total) == (50 - moved, moved)

    async def test_batches_of_one_process_do_not_lose_races(self, commands: Commands) -> None:
        await add(commands, 100)
        await asyncio.gather(*(commands.execute_together(self.move(1)) for _ in range(20)))
        assert commands.conflicts == 0

    async def test_single_commands_and_batches_of_one_process_do_not_lose_races(self, commands: Commands) -> None:
        await add(commands, 100)
        await asyncio.gather(
            *(commands.execute_together(self.move(1)) for _ in range(10)), *(add(commands, -1) for _ in range(10))
        )
        assert commands.conflicts == 0

    async def test_a_repetition_is_answered_with_the_whole_batch(self, commands: Commands) -> None:
        await add(commands, 5)
        context = Context(key="k", fingerprint="f")
        first = await commands.execute_together(self.move(3), context)
        await add(commands, 1, id_="three")
        again = await commands.execute_together([*self.move(3), CommandStep(COUNTER, "four", Add(amount=1))], context)
        assert [outcome.replayed for outcome in again] == [True, True]
        assert [outcome.state for outcome in again] == [outcome.state for outcome in first]

    @pytest.mark.parametrize("is_newer", [True, False])
    async def test_a_repetition_needs_nothing_of_the_commit_after_the_batch(
        self, commands: Commands, log: Slow, *, is_newer: bool
    ) -> None:
        """It may be of a newer program, or of none."""
        await add(commands, 5)
        context = Context(key="k", fingerprint="f")
        first = await commands.execute_together(self.move(3), context)
        if is_newer:
            newer = b'{"id":"n","at":"2026-01-01T00:00:00Z","events":[{"t":"Renamed","d":{}}],"state":{"d":{}}}'
            await log.publish("test.counter.three", newer, f"NATS/1.0\r\n{GUARD}: 0\r\n\r\n".encode())
        else:
            await log.publish("test.counter.three", b"not a commit")
        again = await commands.execute_together(self.move(3), context)
        assert [outcome.state for outcome in again] == [outcome.state for outcome in first]

    async def test_a_repetition_is_not_answered_with_a_part_of_the_batch(self, commands: Commands, log: Slow) -> None:
        """The second commit cannot be read any more."""
        await add(commands, 5)
        context = Context(key="k", fingerprint="f")
        await commands.execute_together(self.move(3), context)
        log.damage(3)
        with pytest.raises(Unavailable, match="sequence 3 cannot be read now"):
            await commands.execute_together([CommandStep(COUNTER, "one", Add(amount=-3))], context)

    async def test_a_key_needs_events_of_the_first_step(self, commands: Commands, log: Slow) -> None:
        """A repetition would take effect twice, because no commit has the key. No event is stored."""
        steps = [CommandStep(COUNTER, "one", Add(amount=0)), CommandStep(COUNTER, "two", Add(amount=1))]
        context = Context(key="k", fingerprint="f")
        for _ in range(2):
            with pytest.raises(ValueError, match=r"the first step, on test\.counter\.one, has no events for the idempotency key"):
                await commands.execute_together(steps, context)
        assert (await log.head()).last == 0
        first, second = await commands.execute_together(steps)
        assert (first.events, second.state.total) == ((), 1)
        nothing, _ = await commands.execute_together(
            [CommandStep(COUNTER, id_, Add(amount=0)) for id_ in ("one", "two")], context
        )
        assert (nothing.events, (await log.head()).last) == ((), 1)

    async def test_a_first_step_that_changes_nothing_is_confirmed_for_the_key(self, commands: Commands) -> None:
        """As a command on one aggregate is, if its decider has `confirm`."""
        confirming: Decider[Counter, Add, Added] = attrs.evolve(
            COUNTER, confirm=lambda command, state: Added(amount=0, total=state.total, by=command.by)
        )
        await add(commands, 5)
        steps = [CommandStep(confirming, "one", Add(amount=0, by="me")), CommandStep(COUNTER, "two", Add(amount=1))]
        for replayed in (False, True):
            outcomes = await commands.execute_together(steps, Context(key="k", fingerprint="f"))
            assert [(outcome.replayed, outcome.state.total) for outcome in outcomes] == [(replayed, 5), (replayed, 1)]

    async def test_a_new_aggregate_that_exists_is_loaded_and_judged(self, commands: Commands) -> None:
        await add(commands, 5)
        (outcome,) = await commands.execute_together([CommandStep(COUNTER, "one", Add(amount=1))])
        assert outcome.state.total == 6


async def test_two_steps_on_one_aggregate_are_refused_at_once(commands: Commands, log: Slow) -> None:
    with pytest.raises(ValueError, match="two steps are on one aggregate"):
        await commands.execute_together([CommandStep(COUNTER, "one", Add(amount=1)), CommandStep(COUNTER, "one", Add(amount=2))])
    assert log.appends == 0
