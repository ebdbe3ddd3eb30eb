"""Commands that lose a race, or hear no answer, are decided again on the newest state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eventlog import Commit, Conflict, OutcomeUnknown, Unavailable
from eventlog.commands import Commands
from eventlog.commit import Appended, Proposal
from eventlog.port import DEADLINE
from tests.eventlog.commands.counters import ONE, KeysInTheLog, Slow, add, history, other_writer
from tests.support.log.counter import COUNTER, Add, Short


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


async def test_a_refusal_is_not_decided_on_a_log_that_lacks_a_known_commit(commands: Commands, log: Slow) -> None:
    """Its leader is behind, or it was cut: the command would be refused on an older state."""
    await add(commands, 1)
    await add(commands, 10)
    await log.cut(1)
    with pytest.raises(Unavailable, match=r"does not have sequence 2 of test\.counter\.one now"):
        await add(commands, -100)


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
