"""A job that the broker delivers no more is recognized, and a missing consumer is declared."""

from __future__ import annotations

import asyncio

import pytest

from eventlog.admin.reconcile import apply_declarations
from eventlog.errors import Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.queue import Depth, JobState, WorkQueue
from tests.gctd.broker.queues import CONSUMER, STREAM, declared, fetched, pulls_waiting, queue_on
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def exhaust(queue: WorkQueue, id_: str) -> None:
    """Take a job as often as it is given, and drop it."""
    await queue.publish("scan", id_, b"", dedupe=id_)
    assert [(await fetched(queue)).delivered for _ in range(3)] == [1, 2, 3]
    assert await queue.fetch(0.5) is None


async def test_a_job_that_nobody_will_get_any_more_is_recognized_and_cured(connection: Connection) -> None:
    queue = await queue_on(connection, "200ms")
    await exhaust(queue, "task-1")
    assert await queue.lookup("scan", "task-1") is JobState.EXHAUSTED
    depth = await queue.depth()
    assert (depth.pending, depth.in_flight, depth.exhausted) == (0, 0, 1)
    await queue.take_back("scan", "task-1")
    await queue.publish("scan", "task-1", b"again", dedupe="task-1 again")
    assert await queue.lookup("scan", "task-1") is JobState.WAITING
    job = await fetched(queue)
    assert (job.payload, job.delivered) == (b"again", 1)
    await job.ack()
    assert await queue.depth() == Depth(0, 0, 0, 0)


async def test_an_exhausted_job_behind_one_in_flight_is_recognized_when_that_is_done(connection: Connection) -> None:
    queue = await queue_on(connection, "1s")
    await queue.publish("scan", "older", b"", dedupe="older")
    older = await fetched(queue)
    async with older.hold():
        await exhaust(queue, "younger")
        assert await queue.lookup("scan", "older") is JobState.IN_FLIGHT
        assert await queue.lookup("scan", "younger") is JobState.IN_FLIGHT
    await older.ack()

    async def recognized() -> bool:  # when AckWait of its last delivery has passed, and a worker asks
        assert await queue.fetch(0.3) is None
        return await queue.lookup("scan", "younger") is JobState.EXHAUSTED

    await wait_until(recognized, timeout=20)


async def test_a_missing_consumer_is_said_or_made(connection: Connection) -> None:
    queue = await queue_on(connection)
    await queue.publish("scan", "task-1", b"", dedupe="1")
    waiting = asyncio.create_task(queue.fetch(5))
    job = await waiting
    assert job is not None
    waiting = asyncio.create_task(queue.fetch(5))
    await wait_until(lambda: pulls_waiting(connection, 1))
    await call(connection, f"CONSUMER.DELETE.{STREAM}.{CONSUMER}")
    with pytest.raises(Unavailable, match="no consumer crap-workers"):
        await waiting
    assert await queue.lookup("scan", "task-1") is JobState.WAITING

    async def repair() -> None:
        await apply_declarations(connection, declared("10m"))

    again = await WorkQueue(connection, STREAM, CONSUMER, repair=repair).fetch(5)
    assert again is not None
    assert again.id == "task-1"
