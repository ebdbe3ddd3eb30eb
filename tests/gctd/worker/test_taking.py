"""A free slot of a worker waits at several queues at the same time, without asking again and again, and ends at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.job import Job
from gctd.broker.queue import WorkQueue
from gctd.control.lanes.queues import LANES_STREAM, SCAN_STREAM, JobQueues
from gctd.worker.process import next_job
from tests.support.pace import within
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@pytest_asyncio.fixture
async def queues(nats_url: str) -> AsyncIterator[JobQueues]:
    async with Connection.open(nats_url, name="test") as connection:
        await apply_declarations(connection, load_declarations().only(SCAN_STREAM, LANES_STREAM))
        queues = JobQueues(connection)
        await queues.prepare("w")
        yield queues


async def put(queue: WorkQueue, id_: str) -> None:
    await queue.publish("scan", id_, b"{}", dedupe=id_)


async def taken(waiting: asyncio.Task[Job | None]) -> Job:
    job = await waiting
    assert job is not None
    return job


async def in_flight(*queues: WorkQueue) -> int:
    return sum([(await queue.depth()).in_flight for queue in queues])


async def test_a_job_of_each_queue_is_taken_as_soon_as_it_comes(queues: JobQueues) -> None:
    own, shared = queues.of("w", fast=False), queues.scan
    for number, queue in enumerate((own, shared, own)):
        waiting = asyncio.create_task(next_job((own, shared), 60, asyncio.Event()))
        await wait_until(lambda: _waits_at_both(queues))
        with within(3):
            await put(queue, f"task-{number}")
            job = await taken(waiting)
        assert job.id == f"task-{number}"
        await job.ack()
    assert await in_flight(own, shared) == 0


async def _waits_at_both(queues: JobQueues) -> bool:
    connection = queues._connection
    names = (f"{SCAN_STREAM}.crap-workers", f"{LANES_STREAM}.crap-w-scan")
    return all([(await call(connection, f"CONSUMER.INFO.{name}"))["num_waiting"] == 1 for name in names])


async def test_the_first_queue_is_before_the_second(queues: JobQueues) -> None:
    own, shared = queues.of("w", fast=False), queues.scan
    for number in range(5):
        await put(shared, f"shared-{number}")
        await put(own, f"own-{number}")
    jobs = [await taken(asyncio.create_task(next_job((own, shared), 60, asyncio.Event()))) for _ in range(10)]
    assert [job.id.partition("-")[0] for job in jobs] == ["own"] * 5 + ["shared"] * 5


async def test_of_two_jobs_of_the_same_moment_one_goes_back(queues: JobQueues) -> None:
    own, shared = queues.of("w", fast=False), queues.scan
    for number in range(20):
        waiting = asyncio.create_task(next_job((own, shared), 60, asyncio.Event()))
        await wait_until(lambda: _waits_at_both(queues))
        await asyncio.gather(put(own, f"own-{number}"), put(shared, f"shared-{number}"))
        first = await taken(waiting)
        second = await taken(asyncio.create_task(next_job((own, shared), 60, asyncio.Event())))
        assert {first.id, second.id} == {f"own-{number}", f"shared-{number}"}
        await asyncio.gather(first.ack(), second.ack())
    assert await in_flight(own, shared) == 0


async def test_the_wait_ends_at_once_when_no_job_may_be_taken_and_keeps_none(queues: JobQueues) -> None:
    own, shared = queues.of("w", fast=False), queues.scan
    held = asyncio.Event()
    waiting = asyncio.create_task(next_job((own, shared), 60, held))
    await wait_until(lambda: _waits_at_both(queues))
    with within(2):
        held.set()
        assert await waiting is None
    await put(shared, "task-1")
    assert (await taken(asyncio.create_task(next_job((own, shared), 60, asyncio.Event())))).delivered == 1


async def test_a_wait_that_is_cancelled_keeps_no_job(queues: JobQueues) -> None:
    own, shared = queues.of("w", fast=False), queues.scan
    for number in range(30):
        waiting = asyncio.create_task(next_job((own, shared), 60, asyncio.Event()))
        await asyncio.sleep(0.001 * (number % 4))
        await put((own, shared)[number % 2], f"task-{number}")
        waiting.cancel()
        (result,) = await asyncio.gather(waiting, return_exceptions=True)
        job = (
            result if isinstance(result, Job) else await taken(asyncio.create_task(next_job((own, shared), 60, asyncio.Event())))
        )
        assert job.id == f"task-{number}"
        await job.ack()
    assert await in_flight(own, shared) == 0
