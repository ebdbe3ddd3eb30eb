"""Following a stream: everything once, in order, whatever happens to the broker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import aclosing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from structlog.testing import capture_logs

from eventlog import AggregateId
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.reading import Pull
from tests.support.log.bulk import STREAM, SUBJECT, bulk_stream, fill
from tests.support.log.reading import Reading, following, sequences
from tests.support.pace import slowness
from tests.support.programs.processes import stand_still
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def consumers(connection: Connection) -> list[str]:
    names: list[str] = (await call(connection, f"CONSUMER.NAMES.{STREAM}"))["consumers"]
    return names


async def publish(connection: Connection, text: str = "x") -> int:
    reply = await connection.request(f"{SUBJECT}.1", text.encode())
    sequence: int = json.loads(reply.data)["seq"]
    return sequence


# Everything, once, in order


async def test_a_replay_over_two_kills_of_the_broker_is_contiguous(nats_server: EmbeddedServer, own: Connection) -> None:
    """kill -9 at a quarter and at a half (fault F18)."""
    await bulk_stream(own)
    await fill(own, 20_000, size=200)
    seen, kills = [], [10_000, 5_000]
    async with asyncio.timeout(30), aclosing(following(own, until=20_000)) as lists:
        async for commits in lists:
            seen += [commit.sequence for commit in commits]
            if kills and seen[-1] >= kills[-1]:
                kills.pop()
                await nats_server.kill()
                await nats_server.restart()
    assert not kills
    assert seen == list(range(1, 20_001))


async def test_live_commits_go_on_over_a_restart(nats_server: EmbeddedServer, own: Connection) -> None:
    await bulk_stream(own)
    reading = Reading(own)
    for round_ in range(3):
        await publish(own)
        await reading.reaches(round_ + 1)
        await nats_server.kill()
        await nats_server.restart()
        await own.up(5)
    await publish(own)
    await reading.reaches(4)
    await reading.close()
    assert reading.sequences == [1, 2, 3, 4]


async def test_a_paused_broker_is_waited_for(nats_server: EmbeddedServer, own: Connection) -> None:
    """SIGSTOP: the connection looks alive for a while, and then the client is replaced."""
    await bulk_stream(own)
    await fill(own, 10)
    reading = Reading(own)
    await reading.reaches(10)
    await stand_still(nats_server.pid)
    try:
        await wait_until(lambda: not own.connected, 10)
    finally:
        os.kill(nats_server.pid, signal.SIGCONT)
    await own.up(10)
    await wait_until(lambda: own.connected, 10)
    await fill(own, 10)
    await reading.reaches(20)
    await reading.close()
    assert reading.sequences == list(range(1, 21))


async def test_a_replaced_client_is_noticed(own: Connection) -> None:
    """The watchdog may put a new client in the place of a dead one; a reader follows it."""
    await bulk_stream(own)
    reading = Reading(own)
    await publish(own)
    await reading.reaches(1)
    reading_task = own.client._reading_task
    assert reading_task is not None
    reading_task.cancel()  # as after an error in nats-py: it is deaf, and still reports that it is connected
    await wait_until(lambda: own.counters.replaced == 1)
    await publish(own)
    await reading.reaches(2)
    await reading.close()
    assert reading.sequences == [1, 2]


async def test_a_consumer_that_the_server_lost_is_made_anew(connection: Connection) -> None:
    await bulk_stream(connection)
    reading = Reading(connection)
    for number in range(1, 4):
        await publish(connection)
        await reading.reaches(number)
        for name in await consumers(connection):
            await call(connection, f"CONSUMER.DELETE.{STREAM}.{name}")
    await publish(connection)
    await reading.reaches(4)
    await reading.close()
    assert reading.sequences == [1, 2, 3, 4]


@pytest.mark.parametrize("aggregate", [None, AggregateId(SUBJECT, "0")], ids=["of all", "of one aggregate"])
@pytest.mark.parametrize("lost", [500, 1000], ids=["in the middle", "the last one"])
async def test_a_message_lost_on_its_way_is_read_again(
    connection: Connection, lost: int, aggregate: AggregateId | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no hole in the log: the consumer's own count tells the two apart."""
    await bulk_stream(connection)
    await fill(connection, 1000, subjects=1)
    take, count = Pull._take, 0

    def drop_one(self: Pull, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        nonlocal count
        count += bool(reply)
        if count != lost or not reply:
            take(self, subject, reply, data, headers)

    monkeypatch.setattr(Pull, "_take", drop_one)
    assert await sequences(following(connection, until=1000, aggregate=aggregate)) == list(range(1, 1001))
    assert count > 1000


async def test_an_idle_reader_keeps_its_consumer(connection: Connection) -> None:
    """With heartbeats, silence means that there is no new commit, and not that one is lost."""
    await bulk_stream(connection)
    reading = Reading(connection)
    await publish(connection)
    await reading.reaches(1)
    before, start = await consumers(connection), time.monotonic()
    await wait_until(lambda: time.monotonic() - start > 4.0)
    assert await consumers(connection) == before
    await publish(connection)
    await reading.reaches(2)
    await reading.close()


async def test_an_idle_reader_has_one_request_open(connection: Connection) -> None:
    """Each open request costs heartbeats. Requests overlap only while commits are to come."""
    await bulk_stream(connection)
    reading = Reading(connection)
    for _ in range(3):
        await publish(connection)
    await reading.reaches(3)
    [name] = await consumers(connection)
    assert (await call(connection, f"CONSUMER.INFO.{STREAM}.{name}"))["num_waiting"] == 1
    await reading.close()


@pytest.mark.parametrize("part", [0.1, 1.1])
async def test_requests_are_accepted_at_each_moment(connection: Connection, monkeypatch: pytest.MonkeyPatch, part: float) -> None:
    """The server refuses a request whose heartbeats are further apart than half of its life."""
    monkeypatch.setattr("eventlog.jetstream.reading.until_tick", lambda period: part * period)
    await bulk_stream(connection)
    await fill(connection, 10)
    with capture_logs() as lines:
        assert await sequences(following(connection, until=10)) == list(range(1, 11))
    assert [line for line in lines if line["event"] == "reading interrupted"] == []


async def test_a_reader_that_was_slow_notices_that_its_consumer_is_lost(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its silence was noticed while commits were still unread."""
    deaf: list[Pull] = []
    pulls: list[Pull] = []
    take = Pull._take

    def take_unless_deaf(self: Pull, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        pulls.append(self)
        if self not in deaf:
            take(self, subject, reply, data, headers)

    monkeypatch.setattr(Pull, "_take", take_unless_deaf)
    monkeypatch.setattr("eventlog.jetstream.reading.SILENCE", 0.2)
    await bulk_stream(connection)
    await fill(connection, 20)
    async with aclosing(following(connection, batch=10)) as lists, asyncio.timeout(20 * slowness()):
        read = [commit.sequence for commit in await anext(lists)]
        deaf.append(pulls[-1])  # as of a server that has lost the consumer without a word
        await wait_until(lambda: pulls[-1]._silent)
        read += [commit.sequence for commit in await anext(lists)]
        await publish(connection)
        read += [commit.sequence for commit in await anext(lists)]
    assert read == list(range(1, 22))


async def test_acknowledgement_subjects_with_domain_and_account_are_understood(tmp_path: Path) -> None:
    """Servers may name them in a second form (ADR-15), which 2.15 has behind a flag."""

    class SecondForm(EmbeddedServer):
        def _configuration(self, ports: Path) -> str:
            settings = json.loads(super()._configuration(ports))
            settings["jetstream"]["domain"] = "hub"
            return json.dumps(settings | {"feature_flags": {"js_ack_fc_v2": True}})

    async with SecondForm(tmp_path) as server, Connection.open(server.url, name="follow") as connection:
        await bulk_stream(connection)
        await fill(connection, 20)
        replies: set[int] = set()

        async def look(message: Any) -> None:
            replies.add(message.reply.count("."))

        jetstream = connection.client.jetstream()
        await jetstream.subscribe(f"{SUBJECT}.*", stream=STREAM, cb=look)
        await wait_until(lambda: replies == {10})
        assert await sequences(following(connection, until=20)) == list(range(1, 21))


# One aggregate


async def test_one_aggregate_is_read_without_the_others(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 1000, subjects=10)
    lists = following(connection, after=100, until=900, aggregate=AggregateId(SUBJECT, "3"), batch=7)
    assert await sequences(lists) == list(range(104, 900, 10))


async def test_one_aggregate_up_to_a_sequence_that_is_still_to_come(connection: Connection) -> None:
    """It ends when the log has passed it, also where the last commit is another aggregate's."""
    await bulk_stream(connection)
    await fill(connection, 10, subjects=10)
    reading = asyncio.create_task(sequences(following(connection, until=25, aggregate=AggregateId(SUBJECT, "3"))))
    await fill(connection, 10, subjects=10)
    await asyncio.wait({reading}, timeout=0.5)
    assert not reading.done()
    await fill(connection, 10, subjects=10)
    assert await reading == [4, 14, 24]


async def test_an_aggregate_without_commits_ends_too(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 10)
    assert await sequences(following(connection, until=10, aggregate=AggregateId(SUBJECT, "none")), 2) == []


# Bounds


async def test_a_live_commit_is_there_at_once(connection: Connection) -> None:
    """Median time from sending to reading under 20 ms, or three times what the broker takes to confirm on a busy machine."""
    await bulk_stream(connection)
    reading = Reading(connection)
    confirmed, read = [], []
    for number in range(1, 101):
        start = time.perf_counter()
        await publish(connection)
        confirmed.append(time.perf_counter() - start)
        await wait_until(partial(reading.has, number), every=0.0002)
        read.append(time.perf_counter() - start)
    await reading.close()
    assert median(read) < max(0.02, 3 * median(confirmed))


@pytest.mark.parametrize(("count", "size", "most"), [(20_000, 100, 4_000), (150, 500_000, 80)])
async def test_a_reader_that_stalls_reads_only_a_little_ahead(connection: Connection, count: int, size: int, most: int) -> None:
    """In messages (a few lists of 1,000) and in bytes (about 32 MiB): the amount in memory is bounded by the amount in flight."""
    await bulk_stream(connection)
    if size < 1000:
        await fill(connection, count, size=size)
    else:
        for _ in range(count):
            await publish(connection, "x" * size)

    async def sent() -> int:
        (name,) = await consumers(connection)
        delivered: int = (await call(connection, f"CONSUMER.INFO.{STREAM}.{name}"))["delivered"]["consumer_seq"]
        return delivered

    async with aclosing(following(connection)) as lists:
        first = await anext(lists)
        level = await sent()
        while (now := await wait_until(sent)) != level:  # until it sends no more
            level = now
            await asyncio.sleep(0.1)
        assert len(first) <= level <= most
        seen = [commit.sequence for commit in first]
        async for commits in lists:
            seen += [commit.sequence for commit in commits]
            if seen[-1] == count:
                break
    assert seen == list(range(1, count + 1))


async def test_a_replay_comes_in_big_lists(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 20_000)
    lists = [len(commits) async for commits in following(connection, until=20_000, batch=500)]
    assert sum(lists) == 20_000
    assert max(lists) <= 500
    assert len(lists) < 80


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_nothing_is_left_of_a_reader_that_ends(connection: Connection, how: str) -> None:
    """Neither a consumer on the server nor a subscription or a task here."""
    await bulk_stream(connection)
    await fill(connection, 5000)
    subscriptions, tasks = len(connection.client._subs), asyncio.all_tasks()
    if how == "closed":
        async with aclosing(following(connection)) as lists:
            await anext(lists)
            assert len(await consumers(connection)) == 1
    else:
        reading = Reading(connection)
        await reading.reaches(5000)
        await reading.close()
    await wait_until(lambda: consumers_gone(connection))
    assert len(connection.client._subs) == subscriptions
    await wait_until(lambda: asyncio.all_tasks() == tasks)


async def consumers_gone(connection: Connection) -> bool:
    return not await consumers(connection)
