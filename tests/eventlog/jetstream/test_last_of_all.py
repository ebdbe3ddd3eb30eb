"""The last commits of all aggregates of a category: each aggregate once, with its newest commit, in lists of a bounded size."""

from __future__ import annotations

import asyncio

import pytest

from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.counter import CATEGORY, COUNTER, REGISTRY, Add

pytestmark = pytest.mark.real

AGGREGATES = 600
FIELDS = {"subjects": ["test.*.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "10MiB", "incarnation": True}


async def test_every_aggregate_of_a_category_comes_once_with_its_last_commit(nats_url: str) -> None:
    async with Connection.open(nats_url, name="test") as connection:
        await apply_declarations(connection, parse({"streams": {"COUNTERS": FIELDS}}))
        log = JetStreamLog(connection, "COUNTERS", REGISTRY)
        assert [commits async for commits in log.last_of_all(CATEGORY)] == []
        commands = Commands(log)
        for amount in (1, 2):
            adding = (commands.execute(COUNTER, f"n{number}", Add(amount=amount)) for number in range(AGGREGATES))
            await asyncio.gather(*adding)
        found = [commits async for commits in log.last_of_all(CATEGORY)]
        assert len(found) > 1
        states = {commit.aggregate.id: commit.state.total for commits in found for commit in commits}
        assert states == {f"n{number}": 3 for number in range(AGGREGATES)}
        assert sum(map(len, found)) == AGGREGATES
        assert [commits async for commits in log.last_of_all("test.other")] == []
