"""A flipped bit in the last message of an aggregate: it is damaged, not absent, and cannot be created a second time."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from eventlog import AggregateDamaged, AggregateId, LogTruncated, NewCommit, NewEvent, OutcomeUnknown, SequenceGap
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.admin.scrub import LogScrubber
from eventlog.commands import Commands, CommandStep
from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.counter import COUNTER, REGISTRY, Add, Added, Counter
from tests.support.log.damage import cut, flip

pytestmark = pytest.mark.real

STREAM = "COUNTERS"
DECLARED = parse(
    {"streams": {STREAM: {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "1MiB"}}}
)


async def test_a_flipped_bit_in_the_last_message_refuses_commands_on_that_aggregate_alone(nats_server: EmbeddedServer) -> None:
    async with Connection.open(nats_server.url, name="damage") as connection:
        await apply_declarations(connection, DECLARED)
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
        with pytest.raises(AggregateDamaged):  # also together with another one, which stays as it is
            await commands.execute_together([CommandStep(COUNTER, name, Add(amount=1)) for name in ("two", "one")])
        with pytest.raises(AggregateDamaged):
            await log.last(AggregateId("test.counter", "one"))
        assert await log.last(AggregateId("test.counter", "nine")) is None
        assert (await commands.execute(COUNTER, "two", Add(amount=1))).state.total == 2
        assert (await log.head()).last == 4


@pytest.mark.parametrize("left", [50, 700], ids=["all", "some"])
async def test_a_block_that_was_cut_makes_no_aggregate_look_absent(nats_server: EmbeddedServer, left: int) -> None:
    """The server keeps the last sequence, and forgets the cut records with their aggregates."""
    async with Connection.open(nats_server.url, name="damage") as connection:
        await apply_declarations(connection, DECLARED)
        log = JetStreamLog(connection, STREAM, REGISTRY)
        commands = Commands(log)
        for number in range(8):
            await commands.execute(COUNTER, f"n{number}", Add(amount=1))
        last = await log.at(8)
        assert last is not None
    await nats_server.stop()
    cut(nats_server.data_dir, STREAM, left)
    await nats_server.start()
    async with Connection.open(nats_server.url, name="damage") as connection:
        log = JetStreamLog(connection, STREAM, REGISTRY)
        for name in ("n7", "new"):
            with pytest.raises(AggregateDamaged, match="records of COUNTERS are missing"):
                await Commands(log).execute(COUNTER, name, Add(amount=1))
        with pytest.raises((LogTruncated, SequenceGap)):
            await asyncio.wait_for(anext(log.follow(after=8, proof=last.digest)), 20)
        found = await LogScrubber(MessageReader(connection, STREAM), REGISTRY, log.head).scrub()
        assert found.count == (8 if left == 50 else 6)


async def test_a_batch_whose_first_record_cannot_be_read_is_not_denied_when_it_is_sent_again(nats_server: EmbeddedServer) -> None:
    """A batch is stored whole or not at all: the second record proves the first one. A conflict would deny both."""

    def proposal(name: str, amount: int) -> Proposal:
        event = NewEvent(Added(amount=amount, total=amount))
        commit = NewCommit(id=f"of-{name}", at=datetime.now(UTC), events=(event,), state=Counter(total=amount, changes=1))
        return Proposal(aggregate=AggregateId("test.counter", name), expected=0, commit=commit)

    proposals = [proposal("one", 777), proposal("two", 1)]
    async with Connection.open(nats_server.url, name="damage") as connection:
        await apply_declarations(connection, DECLARED)
        await JetStreamLog(connection, STREAM, REGISTRY).append_together(proposals)
    await nats_server.stop()
    flip(nats_server.data_dir, STREAM, b'"amount":777')
    await nats_server.start()
    async with Connection.open(nats_server.url, name="damage") as connection:
        log = JetStreamLog(connection, STREAM, REGISTRY)
        with pytest.raises(OutcomeUnknown, match=r"test\.counter\.one of the same batch cannot be read"):
            await log.append_together(proposals, deadline=5.0)


@pytest.mark.parametrize(
    ("amount", "error", "told"),
    [
        (777, SequenceGap, "expected sequence 2, found 3"),
        (888, AggregateDamaged, "cannot read the last one"),
        (999, None, ""),
    ],
    ids=["middle", "last", "other"],
)
async def test_the_commits_of_an_aggregate_are_read_to_the_end_or_one_of_them_is_damaged(
    nats_server: EmbeddedServer, amount: int, error: type[Exception] | None, told: str
) -> None:
    """The server counts a record that it cannot read, and leaves it out."""
    one = AggregateId("test.counter", "one")
    async with Connection.open(nats_server.url, name="damage") as connection:
        await apply_declarations(connection, DECLARED)
        commands = Commands(JetStreamLog(connection, STREAM, REGISTRY))
        for name, number in (("one", 5), ("one", 777), ("one", 6), ("one", 888), ("two", 999), ("two", 7)):
            await commands.execute(COUNTER, name, Add(amount=number))
    await nats_server.stop()
    flip(nats_server.data_dir, STREAM, b'"amount":%d' % amount)
    await nats_server.start()
    async with Connection.open(nats_server.url, name="damage") as connection:
        log = JetStreamLog(connection, STREAM, REGISTRY)
        found = list[int]()
        with nullcontext() if error is None else pytest.raises(error, match=told):
            async with asyncio.timeout(20):
                async for some in log.follow(after=0, until=6, aggregate=one):
                    found += [commit.sequence for commit in some]
        assert found == ([1, 2, 3, 4] if error is None else found)
        live = log.follow(after=4, aggregate=one)
        waiting = asyncio.ensure_future(anext(live))
        done, _ = await asyncio.wait({waiting}, timeout=2.5)  # two looks at a silent log
        assert not done, waiting
        waiting.cancel()
        await asyncio.wait({waiting})
