"""Servers are killed with SIGKILL under load: acknowledged commits are stored once and in order, on one node and on three."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

import attrs
import pytest

from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import Conflict, OutcomeUnknown, Unavailable
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.cluster.servers import Cluster
from tests.support.log.conformance import account, deposit, stored
from tests.support.log.event_stream import STREAM, event_stream
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

WRITERS = 12
TOGETHER, IN_ROW = 3, 6


@attrs.define
class Load:
    """Writers with separate aggregates, and the answers to them.

    A writer appends one commit, then three together, then six in a row, and so on. Even ones give up after 0.2 s and look up the
    position of their aggregate. Odd ones have all the time they need and must not see a fault.
    """

    log: JetStreamLog
    acknowledged: dict[str, list[tuple[str, int]]] = attrs.field(factory=dict)
    """Writer: ids and sequences, in the order in which they were appended."""
    unknown: set[str] = attrs.field(factory=set)
    refused: set[str] = attrs.field(factory=set)
    batches: list[Sequence[str]] = attrs.field(factory=list)
    stop: bool = False

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    async def write(self, number: int) -> None:
        names = [f"w{number}-{part}" for part in range(TOGETHER)]
        at = dict.fromkeys(names, 0)
        told = self.acknowledged.setdefault(f"w{number}", [])
        deadline = 30.0 if number % 2 else 0.2
        for turn in count():
            if self.stop:
                return
            chosen = (names[:1], names, names[:1] * IN_ROW)[turn % 3]
            proposals = [deposit(name, expected=at[name], key=f"{number}-{turn}-{part}") for part, name in enumerate(chosen)]
            if turn % 3 == 1:
                self.batches.append([proposal.commit.id for proposal in proposals])
            if not await self.append(proposals, at, told, deadline):
                assert number % 2 == 0, "a writer with time to spare has seen a fault"
                await self.look(at)

    async def append(
        self, proposals: Sequence[Proposal], at: dict[str, int], told: list[tuple[str, int]], deadline: float
    ) -> bool:
        ids = [proposal.commit.id for proposal in proposals]
        try:
            if len(proposals) == IN_ROW:
                appended = await self.log.append_in_row(proposals, deadline=deadline)
            else:
                appended = await self.log.append_together(proposals, deadline=deadline)
        except OutcomeUnknown:
            self.unknown.update(ids)
            return False
        except (Unavailable, Conflict):  # a conflict with its own append, whose outcome was unknown, and which came through late
            self.refused.update(ids)
            return False
        self.refused.update(ids[len(appended) :])
        for proposal, each in zip(proposals, appended, strict=False):
            at[proposal.aggregate.id] = each.sequence
            told.append((proposal.commit.id, each.sequence))
        return True

    async def look(self, at: dict[str, int]) -> None:
        for name in at:
            while True:
                try:
                    last = await self.log.last(account(name), consistent=True)
                except Unavailable:
                    continue
                at[name] = 0 if last is None else last.sequence
                break

    async def more(self, count: int, within: float) -> None:
        """Wait until that many more are acknowledged."""
        goal = self.count + count
        await wait_until(lambda: self.count >= goal, timeout=within)

    async def audit(self) -> None:
        """I1, and the answers to the writers."""
        commits = await stored(self.log)
        there = Counter(commit.id for commit in commits)
        sequences = {commit.id: commit.sequence for commit in commits}
        assert max(there.values()) == 1
        for told in self.acknowledged.values():
            assert [(id_, sequences.get(id_)) for id_, _ in told] == told
            assert [sequence for _, sequence in told] == sorted(sequence for _, sequence in told)
        assert not self.refused & set(there), "refused as surely not stored, and stored"
        for batch in self.batches:
            assert sum(there[id_] for id_ in batch) in {0, len(batch)}, "a batch is stored in part"
        expected = {id_ for told in self.acknowledged.values() for id_, _ in told}
        assert expected <= set(there) <= expected | self.unknown


async def under_load(log: JetStreamLog, faults: Callable[[Load], Awaitable[None]]) -> Load:
    log.group.estimate.lone = 1.0  # rows share a batch at first, and later if that is faster
    load = Load(log)
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(load.write(number))
        await load.more(200, within=60)
        await faults(load)
        load.stop = True
    await load.audit()
    return load


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
async def test_one_node_is_killed(nats_server: EmbeddedServer, kills: int) -> None:
    """12 writers, kill -9, 0.3 s of nothing, restart: I1 of the fault matrix (F1)."""

    async def faults(load: Load) -> None:
        for _ in range(kills):
            await nats_server.kill()
            await asyncio.sleep(0.3)
            await nats_server.start()
            await load.more(300, within=60)

    async with Connection.open(nats_server.url, name="load") as connection:
        load = await under_load(await event_stream(connection), faults)
        assert connection.counters.reconnects >= kills
        assert load.unknown | load.refused, "no fault was noticed, so nothing was tested"


@pytest.mark.long
async def test_three_nodes_and_the_leader_killed(cluster: Cluster) -> None:
    """The two others elect a new leader and continue (F17). The old one returns and follows."""

    async def faults(load: Load) -> None:
        leader = await cluster.leader(STREAM)
        await leader.kill()
        try:
            await load.more(300, within=60)
        finally:
            await leader.start()
            await cluster.ready()
        await load.more(100, within=60)

    async with Connection.open(cluster.urls, name="load") as connection:
        await under_load(await event_stream(connection, replicas=3), faults)
