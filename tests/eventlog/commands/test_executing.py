"""The executor of commands: decided on the newest state, stored once, answered separately."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any, cast

import attrs
import pytest

from eventlog import (
    Context,
    Decider,
)
from eventlog.commands import MOST_IN_ONE_COMMIT, Commands, CommandStep, Outcome
from eventlog.testing.scenario import given
from tests.eventlog.commands.counters import Slow, add, history
from tests.support.log.counter import COUNTER, Add, Added, Counter, Short
from tests.support.waiting import wait_until


async def test_a_command_is_stored_with_the_state_after_it(commands: Commands, log: Slow) -> None:
    outcome = await add(commands, 5, correlation="request-1")
    (commit,) = await history(log)
    assert commit.sequence == outcome.sequence
    assert commit.state == outcome.state == Counter(total=5, changes=1)
    assert commit.events[0].context.correlation == "request-1"


async def test_a_refusal_stores_nothing(commands: Commands, log: Slow) -> None:
    with pytest.raises(Short):
        await add(commands, -1)
    assert not await history(log)


async def test_nothing_to_do_stores_nothing_and_tells_the_state(commands: Commands, log: Slow) -> None:
    first = await add(commands, 3)
    outcome = await add(commands, 0)
    assert (outcome.events, outcome.state, outcome.sequence) == ((), first.state, first.sequence)
    assert log.appends == 1


async def test_commands_that_wait_share_a_commit_and_are_judged_one_by_one(commands: Commands, log: Slow) -> None:
    log.gate.clear()
    first = asyncio.create_task(add(commands, 2))
    await asyncio.sleep(0)
    rest = [asyncio.create_task(add(commands, -1)) for _ in range(5)]
    await asyncio.sleep(0)
    log.gate.set()
    await first
    answers = await asyncio.gather(*rest, return_exceptions=True)
    assert [isinstance(answer, Short) for answer in answers] == [False, False, True, True, True]
    assert [answer.state.total for answer in answers if isinstance(answer, Outcome)] == [1, 0]
    assert [len(commit.events) for commit in await history(log)] == [1, 2]


async def test_commands_given_in_order_are_judged_in_order_and_share_commits(commands: Commands, log: Slow) -> None:
    amounts = (2, -3, -2, 1)
    answers = await commands.execute_in_order(COUNTER, "one", [(Add(amount=amount), Context()) for amount in amounts])
    assert [answer.state.total if isinstance(answer, Outcome) else type(answer) for answer in answers] == [2, Short, 0, 1]
    assert [len(commit.events) for commit in await history(log)] == [3]


async def test_commands_in_order_whose_caller_gives_up_have_no_effect_if_they_are_not_decided_yet(
    commands: Commands, log: Slow
) -> None:
    """The first commit is on its way when the caller gives up. It is stored, and the other commands are dropped."""
    log.gate.clear()
    many = [(Add(amount=1), Context()) for _ in range(3 * MOST_IN_ONE_COMMIT)]
    caller = asyncio.create_task(commands.execute_in_order(COUNTER, "one", many))
    await wait_until(lambda: log.appends == 1, timeout=10)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    log.gate.set()
    assert (await add(commands, 1)).state.total == MOST_IN_ONE_COMMIT + 1


def _evolve(state: Counter | None, event: Added) -> Counter:
    if event.by == "fault":
        raise ZeroDivisionError("a defect of the rules")
    return COUNTER.evolve(state, event)


FAULTY: Decider[Counter, Add, Added] = Decider(COUNTER.category, COUNTER.decide, _evolve, initial=None)
FAULT = Add(amount=1, by="fault")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("key", [None, "of the fault"])
@pytest.mark.parametrize("others", [None, "of others"])
async def test_a_command_whose_event_cannot_be_folded_fails_alone(
    commands: Commands, log: Slow, others: str | None, key: str | None, place: int
) -> None:
    """The commands that wait with it are stored. Its key is free."""
    several = [(Add(amount=amount), Context(key=others and f"{others} {amount}")) for amount in (1, 2)]
    several.insert(place, (FAULT, Context(key=key)))
    answers = list(await commands.execute_in_order(FAULTY, "one", several))
    assert isinstance(answers.pop(place), ZeroDivisionError)
    assert [answer.state.total for answer in answers if isinstance(answer, Outcome)] == [1, 3]
    assert sum(len(commit.events) for commit in await history(log)) == 2
    assert (await add(commands, 4, key=key)).state.total == 7
    assert commands.conflicts == 0


@attrs.frozen(kw_only=True)
class Unregistered:
    """An event of a class that no registry has."""


def _decide_anything(command: Add, state: Counter | None) -> Sequence[Any]:
    return UNFIT.get(command.by) or COUNTER.decide(command, state)


def _evolve_anything(state: Counter | None, event: Any) -> Any:
    if not isinstance(event, Added):
        return state
    counter = COUNTER.evolve(state, event)
    return attrs.evolve(counter, total=cast("int", object())) if event.by == "state" else counter


UNFIT: dict[str, list[Any]] = {
    "class": [Unregistered()],
    "number": [Added(amount=10**5000, total=0)],
    "field": [Added(amount=1, total=0, by=cast("str", object()))],
    "text": [Added(amount=1, total=0, by="\ud800")],
    "not finite": [Added(amount=cast("int", math.nan), total=0)],
}
UNCHECKED: Decider[Counter, Add, Any] = Decider(COUNTER.category, _decide_anything, _evolve_anything, initial=None)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("unfit", [*UNFIT, "state"])
@pytest.mark.parametrize("others", [None, "of others"])
async def test_a_command_whose_event_or_state_cannot_be_encoded_fails_alone(
    commands: Commands, log: Slow, others: str | None, unfit: str, place: int
) -> None:
    """The commands that wait with it are stored, on a state without it."""
    several = [(Add(amount=amount), Context(key=others and f"{others} {amount}")) for amount in (1, 2)]
    several.insert(place, (Add(amount=1, by=unfit), Context()))
    answers = list(await commands.execute_in_order(UNCHECKED, "one", several))
    assert isinstance(answers.pop(place), ValueError)
    assert [answer.state.total if isinstance(answer, Outcome) else answer for answer in answers] == [1, 3]
    assert sum(len(commit.events) for commit in await history(log)) == 2


async def test_more_commands_than_fit_one_commit_are_all_answered(commands: Commands, log: Slow) -> None:
    many = 3 * MOST_IN_ONE_COMMIT
    outcomes = await asyncio.gather(*(add(commands, 1) for _ in range(many)))
    assert sorted(outcome.state.total for outcome in outcomes) == list(range(1, many + 1))
    assert log.appends < 10


async def test_every_stored_state_is_the_fold_of_the_events(commands: Commands, log: Slow) -> None:
    await asyncio.gather(*(add(commands, amount) for amount in (5, 3, -1, -2, 4)))
    state = None
    for commit in await history(log):
        state = COUNTER.fold((event.data for event in commit.events), state)
        assert commit.state == state


class TestInitialState:
    """A decider with an initial state never gets None, whichever way a command comes."""

    @staticmethod
    def decide(command: Add, state: Counter) -> Sequence[Added]:
        return [Added(amount=command.amount, total=state.total + command.amount)] if command.amount else []

    @staticmethod
    def evolve(state: Counter, event: Added) -> Counter:
        return Counter(total=event.total, changes=state.changes + 1)

    decider: Decider[Counter, Add, Added] = Decider("test.counter", decide, evolve, initial=Counter(total=7))

    async def test_the_first_command_is_decided_on_it(self, commands: Commands, log: Slow) -> None:
        nothing = await commands.execute(self.decider, "one", Add(amount=0))
        assert (nothing.state, nothing.sequence) == (Counter(total=7), 0)
        outcome = await commands.execute(self.decider, "one", Add(amount=2), Context(key="k"))
        assert outcome.state == Counter(total=9, changes=1)
        assert (await commands.execute(self.decider, "one", Add(amount=2), Context(key="k"))).state == outcome.state

    async def test_and_so_are_commands_on_several_aggregates(self, commands: Commands, log: Slow) -> None:
        steps = [CommandStep(self.decider, "one", Add(amount=1)), CommandStep(self.decider, "two", Add(amount=2))]
        assert [outcome.state.total for outcome in await commands.execute_together(steps)] == [8, 9]

    def test_it_is_what_no_events_lead_to(self) -> None:
        assert self.decider.fold(()) == Counter(total=7)
        assert given(self.decider).when(Add(amount=1)).then(Added(amount=1, total=8)) == Counter(total=8, changes=1)
