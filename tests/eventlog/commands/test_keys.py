"""Idempotency keys of commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

import pytest

from eventlog import Context, KeyReused, LogDiverged, OutcomeUnknown, TooLarge, Unavailable
from eventlog.commands import Commands, CommandStep, Outcome, nothing_sent
from eventlog.commands.loading import KeyUse
from eventlog.commit import Appended, Proposal
from eventlog.port import DEADLINE
from tests.eventlog.commands.counters import KeysInTheLog, Slow, add, history, other_writer
from tests.support.log.counter import COUNTER, Add, Short


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

    async def test_the_keys_of_a_round_are_looked_up_together(self, log: Slow) -> None:
        """The error of one key is the answer of its command alone. If all fail, each command with a key gets the error."""

        class Table(KeysInTheLog):
            asked: list[Sequence[str]] = []  # noqa: RUF012 - of this test alone
            damaged = False

            async def find(self, keys: Sequence[str], subject: str, reached: int) -> dict[str, KeyUse | Unavailable]:
                self.asked.append(keys)
                if self.damaged:
                    raise RuntimeError("the table is damaged")
                return await super().find(keys, subject, reached) | {"key-2": Unavailable("key-2 cannot be known")}

        table = Table(log)
        commands = Commands(log, keys=table)
        names = ["key-1", "key-2", None, "key-3", "key-1"]
        orders = [(Add(amount=1), Context(key=name, fingerprint="f" if name else None)) for name in names]
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        assert [a.state.total if isinstance(a, Outcome) else type(a) for a in answers] == [1, Unavailable, 2, 3, 1]
        assert table.asked == [["key-1", "key-2", "key-3"]]
        table.damaged = True
        answers = await commands.execute_in_order(COUNTER, "one", orders)
        assert [a.state.total if isinstance(a, Outcome) else type(a) for a in answers] == [
            RuntimeError,
            RuntimeError,
            4,
            RuntimeError,
            RuntimeError,
        ]

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
            async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse]:
                return {}

        one, other = Commands(log, keys=Forgetful()), Commands(log, keys=Forgetful())
        await add(other, 1, "two", key="key-2", fingerprint="f")
        orders = [(Add(amount=number), Context(key=f"key-{number}", fingerprint="f")) for number in range(1, 5)]
        answers = await one.execute_in_order(COUNTER, "one", orders)
        assert [a.state.total if isinstance(a, Outcome) else type(a) for a in answers] == [1, KeyReused, 4, 8]
        commits = await history(log)
        assert [commit.state.total for commit in commits] == [1, 4, 8]
        assert [commit.prev for commit in commits] == [None, *(commit.digest for commit in commits[:-1])]

    async def test_a_key_in_a_commit_that_the_log_has_exchanged_is_no_answer(self, log: Slow) -> None:
        """The tables know it from a log that was cut and has grown again."""

        class OfAnotherLog:
            async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse]:
                return {"k": KeyUse("k", "f", subject, 1)}

        await add(Commands(log), 1)
        with pytest.raises(LogDiverged, match="sequence 1 is another commit now"):
            await add(Commands(log, keys=OfAnotherLog()), 5, key="k", fingerprint="f")

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


class KeysLater:
    """A read model that is asked for keys and answers when it is `reached`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        await self.reached.wait()
        return {}


async def given_up(command: Awaitable[object]) -> TimeoutError:
    """The error of a caller that waits for a moment."""
    with pytest.raises(TimeoutError) as raised:
        async with asyncio.timeout(0.02):
            await command
    return raised.value


class TestGivingUp:
    """The error tells a caller that gives up whether its command can take effect later."""

    @pytest.mark.parametrize("together", [False, True])
    async def test_a_command_that_was_not_sent_has_no_effect_later(self, log: Slow, *, together: bool) -> None:
        keys = KeysLater()
        commands = Commands(log, keys=keys)
        context = Context(key="k", fingerprint="f")
        five = Add(amount=5)
        if together:
            error = await given_up(commands.execute_together([CommandStep(COUNTER, "one", five)], context))
        else:
            error = await given_up(commands.execute(COUNTER, "one", five, context))
        assert nothing_sent(error)
        keys.reached.set()
        await add(commands, 1)
        assert [commit.state.total for commit in await history(log)] == [1]

    async def test_of_a_command_that_was_sent_that_is_not_said(self, commands: Commands, log: Slow) -> None:
        log.gate.clear()
        assert not nothing_sent(await given_up(add(commands, 5)))
        log.gate.set()
