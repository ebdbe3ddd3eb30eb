"""Counters on a log in memory: commands, other writers, keys, and a log that can be held up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from eventlog import AggregateId, Commit, Context, NewCommit, NewEvent, Unavailable
from eventlog.commands import Commands, Outcome
from eventlog.commands.loading import KeyUse, uses_in
from eventlog.commit import Appended, Proposal
from eventlog.port import DEADLINE
from eventlog.testing.memory import MemoryLog
from tests.support.log.counter import COUNTER, REGISTRY, Add, Added, Counter

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE = AggregateId("test.counter", "one")


class KeysInTheLog:
    """Finds keys by reading the log, like a read model that is never behind."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> dict[str, KeyUse | Unavailable]:
        head = await self._log.head()
        assert reached <= head.last
        found: dict[str, KeyUse | Unavailable] = {}
        for sequence in range(1, head.last + 1):
            commit = await self._log.at(sequence)
            for use in uses_in(commit) if commit is not None and commit.is_guarded else ():
                if use.key in keys:
                    found.setdefault(use.key, use)
        return found


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
    expected, prev = (last.sequence, last.digest) if last else (0, None)
    await MemoryLog.append(log, Proposal(aggregate=aggregate, expected=expected, commit=commit, prev=prev))
