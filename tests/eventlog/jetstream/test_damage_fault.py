"""A flipped bit in the last message of an aggregate: it is damaged, not absent, and nothing is created in its place."""

from __future__ import annotations

import pytest

from eventlog import AggregateDamaged, AggregateId
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply
from eventlog.commands import Commands
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from tests.support.log.counter import COUNTER, REGISTRY, Add
from tests.support.log.damage import flip

pytestmark = pytest.mark.fault

STREAM = "COUNTERS"
DECLARED = parse(
    {"streams": {STREAM: {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "1MiB"}}}
)


async def test_a_flipped_bit_in_the_last_message_refuses_commands_on_that_aggregate_alone(nats_server: EmbeddedServer) -> None:
    async with Connection.open(nats_server.url, name="damage") as connection:
        await apply(connection, DECLARED)
        commands = Commands(JetStreamLog(connection, STREAM, REGISTRY))
        for amount in (5, 777):
            await commands.execute(COUNTER, "one", Add(amount=amount))
        await commands.execute(COUNTER, "two", Add(amount=1))
    await nats_server.stop()
    flip(nats_server.data_dir, STREAM, b'"amount":777')
    await nats_server.start()
    async with Connection.open(nats_server.url, name="damage") as connection:
        log = JetStreamLog(connection, STREAM, REGISTRY)
        commands = Commands(log)
        for amount in (1, 0, -1000):  # a change, nothing to do, a refusal
            with pytest.raises(AggregateDamaged, match=r"test\.counter\.one is damaged"):
                await commands.execute(COUNTER, "one", Add(amount=amount))
        with pytest.raises(AggregateDamaged):
            await log.last(AggregateId("test.counter", "one"))
        assert await log.last(AggregateId("test.counter", "nine")) is None
        assert (await commands.execute(COUNTER, "two", Add(amount=1))).state.total == 2
        assert (await log.head()).last == 4
