"""Fetching jobs: several workers share them, and a cancelled fetch keeps none."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

import pytest

from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.job import Job
from gctd.broker.queue import WorkQueue
from tests.gctd.broker.queues import CONSUMER, STREAM, declared, fetched, pulls_waiting, queue_on
from tests.support.pace import within
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def test_waiting_fetchers_share_a_request_and_get_different_jobs(connection: Connection) -> None:
    queue = await queue_on(connection)
    waiting = [asyncio.create_task(queue.fetch(60)) for _ in range(6)]
    await wait_until(lambda: _requests(connection))
    await asyncio.gather(*(queue.publish("scan", f"task-{number}", b"", dedupe=f"{number}") for number in range(4)))
    await wait_until(lambda: sum(task.done() for task in waiting) == 4)
    done, left = await asyncio.wait(waiting, timeout=0)
    assert {job.id for task in done if (job := task.result())} == {f"task-{number}" for number in range(4)}
    for task in left:
        task.cancel()
    await asyncio.wait(left)
    await queue.publish("scan", "task-4", b"", dedupe="4")  # a cancelled fetch keeps no job
    assert (await fetched(queue)).delivered == 1


async def _requests(connection: Connection) -> bool:
    info = await call(connection, f"CONSUMER.INFO.{STREAM}.{CONSUMER}")
    return bool(info["num_waiting"])


async def test_each_job_goes_to_one_of_many_workers(connection: Connection) -> None:
    queue = await queue_on(connection)
    done: Counter[str] = Counter()

    async def work() -> None:
        while (job := await queue.fetch(0.5)) is not None or done.total() < 200:
            if job is not None:
                done[job.id] += 1
                await job.ack()

    workers = [asyncio.create_task(work()) for _ in range(8)]
    for number in range(200):
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
    await asyncio.wait_for(asyncio.gather(*workers), 60)
    assert done == Counter({f"task-{number}": 1 for number in range(200)})


async def test_waiting_for_a_job_ends_when_it_comes_or_the_time_is_over(connection: Connection) -> None:
    queue = await queue_on(connection)
    start = time.monotonic()
    with within(4):
        assert await queue.fetch(0.3) is None
    assert time.monotonic() - start > 0.25
    waiting = asyncio.create_task(queue.fetch(60))
    await wait_until(lambda: pulls_waiting(connection, 1))
    with within(3):
        await queue.publish("scan", "task-1", b"", dedupe="1")
        job = await waiting
    assert job is not None


async def test_a_fetch_that_is_cancelled_keeps_no_job(connection: Connection) -> None:
    """At whatever moment: AckWait is 10 minutes, and every job is with somebody who asks within a second."""
    await apply_declarations(connection, declared("10m", max_deliver=20))  # a job of a cancelled fetch uses one up
    queue, chance, seen = WorkQueue(connection, STREAM, CONSUMER), random.Random(7), set()
    for number in range(200):
        asking = asyncio.create_task(queue.fetch(5))
        await asyncio.sleep(chance.uniform(0, 0.002))
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        asking.cancel()
        (result,) = await asyncio.gather(asking, return_exceptions=True)
        if isinstance(result, Job):
            seen.add(result.id)
            await result.ack()
    while (job := await queue.fetch(1)) is not None:
        seen.add(job.id)
        await job.ack()
    assert seen == {f"task-{number}" for number in range(200)}


async def test_a_fetch_that_was_cancelled_is_not_given_a_job(connection: Connection) -> None:
    """Each delivery counts, and there are three."""
    queue = await queue_on(connection)
    for number in range(5):
        asking = asyncio.create_task(queue.fetch(5))
        await wait_until(lambda: pulls_waiting(connection, 1))
        asking.cancel()
        await asyncio.wait({asking})
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
        job = await fetched(queue)
        assert (job.id, job.delivered) == (f"task-{number}", 1)
        await job.ack()
