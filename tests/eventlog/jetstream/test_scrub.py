"""A pass over the log finds the damaged records, names them, and reads the rest."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.admin import scrub
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.admin.scrub import LogScrubber, ScrubState
from eventlog.commands import Commands
from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.counter import COUNTER, REGISTRY, Add, Added, Counter
from tests.support.log.damage import flip
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

STREAM = "COUNTERS"
DECLARED = parse(
    {"streams": {STREAM: {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "4MiB"}}}
)


@asynccontextmanager
async def opened(server: EmbeddedServer) -> AsyncIterator[tuple[JetStreamLog, LogScrubber]]:
    async with Connection.open(server.url, name="scrub") as connection:
        log = JetStreamLog(connection, STREAM, REGISTRY)
        await apply_declarations(connection, DECLARED)
        yield log, LogScrubber(MessageReader(connection, STREAM), REGISTRY, log.head)


async def interrupted(scrubber: LogScrubber) -> None:
    """A pass that ends after its first records."""
    before = scrubber.current
    scrubbing = asyncio.create_task(scrubber.scrub(rate=10))
    await wait_until(lambda: scrubber.current is not before and scrubber.current is not None and scrubber.current.position > 0)
    scrubbing.cancel()
    await asyncio.wait({scrubbing})


async def test_a_sound_log_has_no_findings_and_a_pass_that_was_interrupted_goes_on(nats_server: EmbeddedServer) -> None:
    async with opened(nats_server) as (log, scrubber):
        for number in range(600):
            await Commands(log).execute(COUNTER, f"c{number % 7}", Add(amount=1))

        await interrupted(scrubber)
        assert scrubber.current is not None
        began, reached = scrubber.current.started, scrubber.current.position
        assert 0 < reached < 600
        assert scrubber.complete is None
        done = await scrubber.scrub()
        assert (done.started, done.position, done.until, done.count) == (began, 600, 600, 0)
        assert done.ended is not None


@pytest.mark.parametrize(("processors", "gives_way", "pause"), [(0.2, True, 2.56), (0.9, True, 10.24), (0.9, False, 2.56)])
async def test_a_pass_gives_way_to_a_busy_process(
    nats_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, processors: float, gives_way: bool, pause: float
) -> None:
    pauses = list[float]()
    sleep, scrubbing = asyncio.sleep, asyncio.current_task()

    async def slept(seconds: float) -> None:
        if asyncio.current_task() is not scrubbing:  # a timer of the client: it pings
            await sleep(seconds)
        else:
            pauses.append(seconds)
            await sleep(0)

    async with opened(nats_server) as (log, scrubber):
        for number in range(300):
            await Commands(log).execute(COUNTER, f"c{number % 7}", Add(amount=1))
        monkeypatch.setattr(time, "process_time", lambda: time.monotonic() * processors)
        monkeypatch.setattr(asyncio, "sleep", slept)
        monkeypatch.setattr(scrub, "_BUSY_RATE", 25.0)  # a low rate: the work of a busy machine takes a small part of the pause
        done = await scrubber.scrub(rate=100, gives_way=gives_way)
        monkeypatch.undo()
        assert (done.position, done.count) == (300, 0)
        assert pause / 2 < pauses[0] <= pause


class Memory:
    """Keeps the state as text, as a database does."""

    def __init__(self) -> None:
        self.text: bytes | None = None

    async def load(self) -> ScrubState | None:
        return None if self.text is None else msgspec.json.decode(self.text, type=ScrubState)

    async def keep(self, state: ScrubState) -> None:
        self.text = msgspec.json.encode(state)


async def test_another_process_knows_the_findings_and_completes_an_interrupted_pass(nats_server: EmbeddedServer) -> None:
    """But not of a stream that was created again."""
    async with opened(nats_server) as (log, _):
        for number in range(300):
            await Commands(log).execute(COUNTER, f"c{number % 7}", Add(amount=1))
        await log.connection.client.jetstream().publish("test.counter.stray", b"{}")
        reader, memory = MessageReader(log.connection, STREAM), Memory()
        first, second, third = (LogScrubber(reader, REGISTRY, log.head, memory=memory) for _ in range(3))
        complete = await first.scrub()
        await interrupted(first)
        memory.text = msgspec.json.encode(ScrubState(first.current, first.complete))
        await second.recall()
        assert (second.complete, second.current, second.found) == (complete, first.current, complete)
        assert second.current is not None
        begun = second.current
        assert 0 < begun.position < begun.until
        assert (await second.scrub()).started == begun.started
        await log.connection.client.jetstream().delete_stream(STREAM)
        await apply_declarations(log.connection, DECLARED)
        await third.recall()
        assert (third.current, third.complete) == (None, None)


async def test_a_flipped_bit_in_the_middle_is_found_and_named_with_no_others(nats_server: EmbeddedServer) -> None:
    async with opened(nats_server) as (log, _):
        for amount in range(101, 131):
            await Commands(log).execute(COUNTER, "one", Add(amount=amount))
            await Commands(log).execute(COUNTER, "two", Add(amount=1))
    await nats_server.stop()
    flip(nats_server.data_dir, STREAM, b'"amount":115')
    await nats_server.start()
    async with opened(nats_server) as (_, scrubber):
        done = await scrubber.scrub()
        assert [(damage.sequence, damage.problem) for damage in done.found] == [(29, "the record cannot be read")]
        assert scrubber.found is done


async def test_what_was_published_past_the_event_log_or_does_not_follow_is_found(nats_server: EmbeddedServer) -> None:
    async with opened(nats_server) as (log, scrubber):
        commands = Commands(log)
        for amount in (1, 2):
            await commands.execute(COUNTER, "one", Add(amount=amount))
        last = await log.at(2)
        assert last is not None
        forged = json.loads(last.data) | {"id": "forged"}
        client = log.connection.client
        headers = {"Nats-Expected-Last-Subject-Sequence": "2"}
        await client.jetstream().publish("test.counter.one", json.dumps(forged).encode(), headers=headers)
        await client.jetstream().publish("test.counter.two", json.dumps(forged).encode())
        done = await scrubber.scrub()
        assert [str(damage) for damage in done.found] == [
            "sequence 3, test.counter.one: it was decided on another commit than the one at sequence 2",
            "sequence 4, test.counter.two: it was stored without a guard, past the event log",
        ]


async def test_a_state_that_contradicts_its_events_is_found_and_stays_found(nats_server: EmbeddedServer) -> None:
    """Stored under a correct guard; a service compares a sample of each pass, so a few passes find it."""
    async with opened(nats_server) as (log, _):
        await Commands(log).execute(COUNTER, "one", Add(amount=5))
        first = await log.last(AggregateId("test.counter", "one"))
        assert first is not None
        commit = NewCommit(
            id="lie", at=first.at, events=(NewEvent(Added(amount=1, total=6)),), state=Counter(total=66, changes=2)
        )
        await log.append(Proposal(aggregate=first.aggregate, expected=1, commit=commit, prev=first.digest))
        reader = MessageReader(log.connection, STREAM)
        scrubber = LogScrubber(reader, REGISTRY, log.head, folds={"test.counter": COUNTER.fold})
        for _ in range(500):
            if (await scrubber.scrub()).count:
                break
        expected = "sequence 2, test.counter.one: its events give total 6, its state says 66"
        assert scrubber.found is not None
        assert [str(damage) for damage in scrubber.found.found] == [expected]
        await scrubber.look_again()
        assert scrubber.found.count == 1
