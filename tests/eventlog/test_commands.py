"""Promises of the executor of commands: decided on the newest state, stored once, answered separately."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from eventlog import (
    DEADLINE,
    AggregateId,
    Appended,
    Commit,
    Conflict,
    Context,
    Decider,
    KeyReused,
    NewCommit,
    NewEvent,
    OutcomeUnknown,
    Proposal,
    TooLarge,
)
from eventlog.commands import MOST_IN_ONE_COMMIT, Commands, CommandStep, Outcome
from eventlog.testing.memory import MemoryLog
from eventlog.testing.scenario import given
from tests.support.log.counter import COUNTER, REGISTRY, Add, Added, Counter, Short
from tests.support.waiting import wait_until

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE = AggregateId("test.counter", "one")


@attrs.frozen
class Use:
    fingerprint: str | None
    subject: str
    sequence: int


class KeysInTheLog:
    """Finds keys by reading the log, like a read model that is never behind."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def find(self, key: str, subject: str, reached: int) -> Use | None:
        head = await self._log.head()
        assert reached <= head.last
        async for commits in self._log.follow(after=0, until=head.last):
            for commit in commits:
                for event in commit.events:
                    if event.context.key == key:
                        return Use(event.context.fingerprint, commit.subject, commit.sequence)
        return None


class Slow(MemoryLog):
    """Appends only when it is let to, and counts."""

    def __init__(self) -> None:
        super().__init__(REGISTRY)
        self.gate = asyncio.Event()
        self.gate.set()
        self.appends = 0

    async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
        self.appends += 1
        await self.gate.wait()
        return await super().append(proposal, deadline=deadline)

    async def append_in_row(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
        self.appends += 1
        await self.gate.wait()
        return await super().append_in_row(proposals, deadline=deadline)


@pytest.fixture
def log() -> Slow:
    return Slow()


@pytest.fixture
def commands(log: Slow) -> Commands:
    return Commands(log, keys=KeysInTheLog(log))


async def add(commands: Commands, amount: int, id_: str = "one", **context: Any) -> Outcome[Counter, Added]:
    return await commands.execute(COUNTER, id_, Add(amount=amount), Context(**context))


async def history(log: MemoryLog, aggregate: AggregateId = ONE) -> Sequence[Commit]:
    return [commit async for commit in log.history(aggregate)]


async def other_writer(log: MemoryLog, amount: int, id_: str = "one") -> None:
    """Another process changes the counter."""
    aggregate = AggregateId("test.counter", id_)
    last = await log.last(aggregate)
    state = last.state if last else Counter()
    event = Added(amount=amount, total=state.total + amount, by="other")
    commit = NewCommit(id=f"other-{amount}-{id(event)}", at=AT, events=(NewEvent(event),), state=COUNTER.evolve(state, event))
    await MemoryLog.append(log, Proposal(aggregate=aggregate, expected=last.sequence if last else 0, commit=commit))


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


async def test_a_lost_race_is_decided_again_on_the_new_state(commands: Commands, log: Slow) -> None:
    await add(commands, 5)
    await other_writer(log, -5)
    with pytest.raises(Short):
        await add(commands, -1)
    await other_writer(log, 10)
    assert (await add(commands, -1)).state.total == 9
    assert commands.conflicts == 1


async def test_a_refusal_is_never_based_on_what_this_process_remembers(commands: Commands, log: Slow) -> None:
    await add(commands, 1)
    await other_writer(log, 10)
    assert (await add(commands, -5)).state.total == 6


async def test_what_was_learnt_of_an_aggregate_need_not_be_read(log: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    await Commands(log).execute(COUNTER, "one", Add(amount=1))
    commit = await log.last(ONE)
    assert commit is not None
    reads = 0
    last = log.last

    async def counting(*arguments: Any, **named: Any) -> Commit | None:
        nonlocal reads
        reads += 1
        return await last(*arguments, **named)

    monkeypatch.setattr(log, "last", counting)
    commands = Commands(log)
    commands.learn(commit)
    outcome = await commands.execute(COUNTER, "one", Add(amount=2))
    assert (outcome.state.total, outcome.sequence, reads, commands.conflicts) == (3, 2, 0, 0)
    commands.learn(commit)
    assert (await commands.execute(COUNTER, "one", Add(amount=1))).sequence == 3
    assert (reads, commands.conflicts) == (0, 0), "a later state is not forgotten for an earlier one"


async def test_what_was_learnt_and_is_outdated_does_no_harm(commands: Commands, log: Slow) -> None:
    await commands.execute(COUNTER, "one", Add(amount=1))
    commit = await log.last(ONE)
    assert commit is not None
    await commands.execute(COUNTER, "one", Add(amount=2))
    late = Commands(log)
    late.learn(commit)
    assert (await late.execute(COUNTER, "one", Add(amount=4))).state.total == 7
    assert late.conflicts == 1


async def test_ten_lost_races_are_the_callers(log: Slow) -> None:
    class AlwaysLate(Commands):
        pass

    class Busy(Slow):
        async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
            await other_writer(self, 1)
            return await super().append(proposal, deadline=deadline)

    busy = Busy()
    with pytest.raises(Conflict):
        await add(AlwaysLate(busy), 1)
    assert busy.appends == 10
    assert len(await history(busy)) == 10


async def test_an_unknown_outcome_is_told_and_the_next_command_reads_afresh(log: Slow) -> None:
    class Silent(Slow):
        async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
            appended = await super().append(proposal, deadline=deadline)
            if self.appends == 1:
                raise OutcomeUnknown("no answer")
            return appended

    silent = Silent()
    commands = Commands(silent, keys=KeysInTheLog(silent))
    with pytest.raises(OutcomeUnknown):
        await add(commands, 5, key="k", fingerprint="f")
    again = await add(commands, 5, key="k", fingerprint="f")
    assert again.replayed
    assert again.state.total == 5
    assert len(await history(silent)) == 1


async def test_a_caller_that_gives_up_disturbs_nobody(commands: Commands, log: Slow) -> None:
    log.gate.clear()
    first = asyncio.create_task(add(commands, 1))
    await asyncio.sleep(0)
    second, third = asyncio.create_task(add(commands, 1)), asyncio.create_task(add(commands, 1))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    log.gate.set()
    assert (await third).state.total == 2
    assert [len(commit.events) for commit in await history(log)] == [1, 1]


class TestKeys:
    async def test_a_repeated_command_takes_effect_once(self, commands: Commands, log: Slow) -> None:
        first = await add(commands, 5, key="k", fingerprint="f")
        await add(commands, 1)
        again = await add(commands, 5, key="k", fingerprint="f")
        assert again.replayed
        assert not first.replayed
        assert (again.events, again.state, again.sequence) == (first.events, first.state, first.sequence)

    async def test_also_in_parallel(self, commands: Commands, log: Slow) -> None:
        outcomes = await asyncio.gather(*(add(commands, 5, key="k", fingerprint="f") for _ in range(20)))
        assert {(outcome.sequence, outcome.state.total) for outcome in outcomes} == {(1, 5)}
        assert sum(not outcome.replayed for outcome in outcomes) == 1
        assert len(await history(log)) == 1

    async def test_also_in_parallel_on_several_processes(self, log: Slow) -> None:
        processes = [Commands(log, keys=KeysInTheLog(log)) for _ in range(4)]
        outcomes = await asyncio.gather(*(add(one, 5, key="k", fingerprint="f") for one in processes * 3))
        assert {(outcome.sequence, outcome.state.total) for outcome in outcomes} == {(1, 5)}

    async def test_another_request_with_the_same_key_is_refused(self, commands: Commands, log: Slow) -> None:
        await add(commands, 5, key="k", fingerprint="f")
        with pytest.raises(KeyReused):
            await add(commands, 6, key="k", fingerprint="g")
        with pytest.raises(KeyReused):
            await add(commands, 5, id_="two", key="k", fingerprint="f")

    async def test_another_request_with_the_same_key_at_the_same_moment_is_refused(self, commands: Commands) -> None:
        answers = await asyncio.gather(
            add(commands, 5, key="k", fingerprint="f"),
            add(commands, 6, key="k", fingerprint="g"),
            return_exceptions=True,
        )
        assert isinstance(answers[1], KeyReused)

    async def test_in_a_shared_commit_the_answer_is_the_state_after_ones_own_events(self, commands: Commands, log: Slow) -> None:
        log.gate.clear()
        first = asyncio.create_task(add(commands, 1))
        await asyncio.sleep(0)
        mine = asyncio.create_task(add(commands, 2, key="k", fingerprint="f"))
        after = asyncio.create_task(add(commands, 4))
        await asyncio.sleep(0)
        log.gate.set()
        await asyncio.gather(first, mine, after)
        again = await add(commands, 2, key="k", fingerprint="f")
        assert (await mine).state.total == again.state.total == 3
        assert again.events == (await mine).events

    async def test_each_key_has_a_commit_and_commands_without_a_key_share_it(self, commands: Commands, log: Slow) -> None:
        """The broker compares one key for each commit."""
        keys = [None, "a", None, "b", "c", None]
        orders = [(Add(amount=1), Context(key=key, fingerprint="f")) for key in keys]
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        stored = [(answer.sequence, answer.state.total) for answer in answers if isinstance(answer, Outcome)]
        assert stored == [(1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (3, 6)]
        assert [[event.context.key for event in commit.events] for commit in await history(log)] == [
            [None, "a", None],
            ["b"],
            ["c", None],
        ]
        assert log.appends == 1
        again = await commands.execute_in_order(COUNTER, "one", orders[3:5])
        assert [answer.replayed and answer.state.total for answer in again if isinstance(answer, Outcome)] == [4, 5]

    async def test_another_writer_between_two_of_several_keys_does_no_harm(self, log: Slow) -> None:
        class Interrupted(Slow):
            async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
                appended = await super().append(proposal, deadline=deadline)
                if self.appends == 2:
                    await other_writer(self, -2)
                return appended

            async def append_in_row(self, proposals: Sequence[Proposal], *, deadline: float = DEADLINE) -> Sequence[Appended]:
                return [await self.append(proposals[0], deadline=deadline)]

        busy = Interrupted()
        commands = Commands(busy, keys=KeysInTheLog(busy))
        orders = [
            (Add(amount=amount), Context(key=f"key-{number}", fingerprint="f")) for number, amount in enumerate((1, 1, -1, 1))
        ]
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        assert [answer.state.total if isinstance(answer, Outcome) else type(answer) for answer in answers] == [1, 2, Short, 1]
        assert [commit.state.total for commit in await history(busy)] == [1, 2, 0, 1]

    async def test_a_key_that_is_used_elsewhere_is_refused_alone(self, log: Slow) -> None:
        """Of several keys that wait, one takes effect on another server for another aggregate."""

        class Forgetful:
            async def find(self, key: str, subject: str, reached: int) -> Use | None:
                return None

        one, other = Commands(log, keys=Forgetful()), Commands(log, keys=Forgetful())
        await add(other, 1, "two", key="key-2", fingerprint="f")
        orders = [(Add(amount=number), Context(key=f"key-{number}", fingerprint="f")) for number in range(1, 5)]
        answers = await one.execute_in_order(COUNTER, "one", orders)
        assert [a.state.total if isinstance(a, Outcome) else type(a) for a in answers] == [1, KeyReused, 4, 8]
        commits = await history(log)
        assert [commit.state.total for commit in commits] == [1, 4, 8]
        assert [commit.prev for commit in commits] == [None, *(commit.digest for commit in commits[:-1])]

    async def test_a_row_without_an_answer_is_unknown_to_each_and_repeated_with_its_keys(
        self, commands: Commands, log: Slow
    ) -> None:
        orders = [(Add(amount=1), Context(key=f"key-{number}", fingerprint="f")) for number in range(4)]
        log.lose_next_answer()
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        assert {type(answer) for answer in answers} == {OutcomeUnknown}
        again = await commands.execute_in_order(COUNTER, "one", orders)
        assert [answer.replayed and answer.state.total for answer in again if isinstance(answer, Outcome)] == [1, 2, 3, 4]
        assert len(await history(log)) == 4

    async def test_a_refusal_between_keys_is_decided_on_the_commits_before_it(self, commands: Commands, log: Slow) -> None:
        orders = [(Add(amount=n), Context(key=f"key-{i}", fingerprint="f")) for i, n in enumerate((1, 1, -3, 1))]
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        assert [a.state.total if isinstance(a, Outcome) else type(a) for a in answers] == [1, 2, Short, 3]
        assert log.appends == 1

    async def test_a_command_that_is_too_large_does_not_fail_the_others(self, log: Slow) -> None:
        class Narrow(Slow):
            async def append(self, proposal: Proposal, *, deadline: float = DEADLINE) -> Appended:
                if any(event.data.amount == 7 for event in proposal.commit.events):
                    raise TooLarge("a 7 is too large")
                return await super().append(proposal, deadline=deadline)

        answers = await Commands(Narrow()).execute_in_order(COUNTER, "one", [(Add(amount=n), Context()) for n in (1, 7, 2, 3)])
        assert [answer.state.total if isinstance(answer, Outcome) else type(answer) for answer in answers] == [1, TooLarge, 3, 6]

    async def test_a_refused_command_may_be_repeated_with_its_key(self, commands: Commands) -> None:
        with pytest.raises(Short):
            await add(commands, -1, key="k", fingerprint="f")
        await add(commands, 1)
        assert (await add(commands, -1, key="k", fingerprint="f")).state.total == 0

    async def test_a_key_without_a_read_model_is_a_programming_error(self, log: Slow) -> None:
        with pytest.raises(ValueError, match="idempotency"):
            await add(Commands(log), 1, key="k")


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

    async def test_a_new_aggregate_that_exists_is_loaded_and_judged(self, commands: Commands) -> None:
        await add(commands, 5)
        (outcome,) = await commands.execute_together([CommandStep(COUNTER, "one", Add(amount=1))])
        assert outcome.state.total == 6


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


async def test_two_steps_on_one_aggregate_are_refused_at_once(commands: Commands, log: Slow) -> None:
    with pytest.raises(ValueError, match="two steps are on one aggregate"):
        await commands.execute_together([CommandStep(COUNTER, "one", Add(amount=1)), CommandStep(COUNTER, "one", Add(amount=2))])
    assert log.appends == 0
