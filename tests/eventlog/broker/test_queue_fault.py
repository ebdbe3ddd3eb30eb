"""The work queue: a job is one worker's at a time, is not lost, and comes back from a worker that does not finish it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import attrs
import pytest
import pytest_asyncio

from eventlog.admin.declarations import Declarations, load
from eventlog.admin.reconcile import apply
from eventlog.broker.job import SETTLE_TIMEOUT, acknowledge
from eventlog.broker.queue import Depth, Job, JobState, WorkQueue
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.transport.connection import Connection
from tests.support.log.nats import abort_transport
from tests.support.pace import within
from tests.support.waiting import wait_until

STREAM, CONSUMER = "crap_jobs_scan", "crap-workers"


def declared(ack_wait: str, **options: Any) -> Declarations:
    return load(overrides={CONSUMER: {"ack_wait": ack_wait, **options}}).only(STREAM)


async def queue_on(connection: Connection, ack_wait: str = "10m", **options: Any) -> WorkQueue:
    await apply(connection, declared(ack_wait))
    return WorkQueue(connection, STREAM, CONSUMER, **options)


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="queue") as connection:
        yield connection


async def fetched(queue: WorkQueue, within: float = 20.0) -> Job:
    job = await queue.fetch(within)
    assert job is not None
    return job


# Putting in and taking out


async def test_a_job_comes_out_as_it_went_in_and_leaves_with_its_acknowledgement(connection: Connection) -> None:
    queue = await queue_on(connection)
    assert await queue.publish("scan", "task-1", b'{"attempt":1}', dedupe="task-1 1")
    job = await fetched(queue)
    assert (job.kind, job.id, job.payload, job.delivered, job.sequence) == ("scan", "task-1", b'{"attempt":1}', 1, 1)
    assert job.ack_wait == 600
    await job.ack()
    assert await queue.depth() == Depth(0, 0, 0, 0)
    assert await queue.fetch(0.05) is None


async def test_a_job_is_put_in_once_for_one_dedupe_id(connection: Connection) -> None:
    queue = await queue_on(connection)
    assert await queue.publish("scan", "task-1", b"", dedupe="same")
    assert not await queue.publish("scan", "task-1", b"", dedupe="same")
    assert (await queue.depth()).pending == 1


@attrs.frozen
class Wanted:
    kind: str
    id: str
    dedupe: str
    payload: bytes = b"{}"


async def test_many_jobs_are_put_in_together_and_each_once(connection: Connection) -> None:
    queue = await queue_on(connection)
    jobs = [Wanted("scan", f"task-{number}", f"scan task-{number}") for number in range(30)]
    before = connection.client.stats["in_msgs"]
    await queue.publish_all(jobs[:20])
    assert connection.client.stats["in_msgs"] - before < 20  # they share their acknowledgement
    await queue.publish_all(jobs)
    taken = await asyncio.gather(*(fetched(queue) for _ in jobs))
    assert Counter(job.id for job in taken) == Counter(job.id for job in jobs)
    assert (await queue.depth()).pending == 0


@pytest.mark.parametrize("count", [3, 30])
async def test_many_jobs_that_cannot_be_put_in_are_one_error(connection: Connection, count: int) -> None:
    queue = await queue_on(connection)
    abort_transport(connection)
    with pytest.raises(Unavailable):
        await queue.publish_all([Wanted("scan", f"task-{number}", f"scan task-{number}") for number in range(count)])


async def test_those_who_wait_for_a_job_share_a_request_and_get_different_ones(connection: Connection) -> None:
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


@pytest.mark.parametrize(
    ("kind", "id_"), [("scan", "a.b"), ("*", "a"), ("scan", ">"), ("scan", ""), ("scan", "a b"), ("scan", "é")]
)
async def test_names_that_would_change_the_subject_are_refused(connection: Connection, kind: str, id_: str) -> None:
    queue = await queue_on(connection)
    with pytest.raises(ValueError, match="kind and id"):
        await queue.publish(kind, id_, b"", dedupe="x")


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


async def pulls_waiting(connection: Connection, count: int) -> bool:
    info = await call(connection, f"CONSUMER.INFO.{STREAM}.{CONSUMER}")
    return bool(info["num_waiting"] == count)


# Leases


async def test_a_job_that_is_held_is_delivered_once_however_long_it_takes(connection: Connection) -> None:
    """AckWait 1.5 s, work of 4 s; another worker asks all the time."""
    queue = await queue_on(connection, "1500ms")
    await queue.publish("scan", "task-1", b"", dedupe="1")
    job = await fetched(queue)
    async with job.hold():
        assert await queue.fetch(4) is None
    await job.ack()
    assert job.delivered == 1
    assert await queue.fetch(1.7) is None
    assert await queue.depth() == Depth(0, 0, 0, 0)


async def test_a_job_that_is_not_held_goes_to_another_worker(connection: Connection) -> None:
    queue = await queue_on(connection, "500ms")
    await queue.publish("scan", "task-1", b"", dedupe="1")
    first = await fetched(queue)
    second = await fetched(queue)
    assert (first.delivered, second.delivered, second.sequence) == (1, 2, first.sequence)
    assert (await queue.depth()).redelivered == 1
    await second.ack()


async def test_holding_ends_with_the_block(connection: Connection) -> None:
    queue = await queue_on(connection, "500ms")
    await queue.publish("scan", "task-1", b"", dedupe="1")
    job = await fetched(queue)
    with pytest.raises(RuntimeError, match="the work failed"):
        async with job.hold():
            raise RuntimeError("the work failed")
    assert (await fetched(queue)).delivered == 2


async def test_a_failed_job_comes_back_after_the_delay_and_not_before(connection: Connection) -> None:
    queue = await queue_on(connection)
    await queue.publish("scan", "task-1", b"", dedupe="1")
    await (await fetched(queue)).nak(0.8)
    start = time.monotonic()
    with within(8):
        again = await fetched(queue)
    assert again.delivered == 2
    assert time.monotonic() - start > 0.7


async def test_jobs_that_are_done_are_acknowledged_with_one_confirmation(connection: Connection) -> None:
    queue = await queue_on(connection)
    for number in range(20):
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
    jobs = [await fetched(queue) for _ in range(20)]
    before = connection.client.stats["in_msgs"]
    await acknowledge(jobs)
    assert connection.client.stats["in_msgs"] - before < 20
    assert await queue.depth() == Depth(0, 0, 0, 0)
    await acknowledge(jobs[:1])  # again: no harm


async def test_a_job_that_has_left_is_settled_also_where_the_broker_forgot_that_it_gave_it_away(connection: Connection) -> None:
    """As after the kill of a broker: it does not confirm such a job."""
    queue = await queue_on(connection)
    for number in range(2):
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
    jobs = [await fetched(queue) for _ in range(2)]
    await call(connection, f"CONSUMER.DELETE.{STREAM}.{CONSUMER}")
    await apply(connection, declared("10m"))
    await call(connection, f"STREAM.MSG.DELETE.{STREAM}", {"seq": jobs[0].sequence})
    async with asyncio.timeout(SETTLE_TIMEOUT - 2):
        await jobs[0].ack()
    with pytest.raises(OutcomeUnknown):
        await acknowledge(jobs)
    again = await fetched(queue)
    assert (again.id, again.delivered) == ("task-1", 1)


async def test_a_terminated_job_never_comes_back(connection: Connection) -> None:
    queue = await queue_on(connection, "300ms")
    await queue.publish("scan", "task-1", b"", dedupe="1")
    await (await fetched(queue)).term()
    assert await queue.fetch(0.6) is None
    assert await queue.lookup("scan", "task-1") is JobState.ABSENT


async def test_a_fetch_that_is_cancelled_keeps_no_job(connection: Connection) -> None:
    """At whatever moment: AckWait is 10 minutes, and every job is with somebody who asks within a second."""
    queue, chance, seen = await queue_on(connection), random.Random(7), set()
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


# The outcome of a job


async def test_the_states_of_a_job(connection: Connection) -> None:
    queue = await queue_on(connection)
    assert await queue.lookup("scan", "task-1") is JobState.ABSENT
    assert not await queue.has_job("scan", "task-1")
    await queue.publish("scan", "task-1", b"", dedupe="1")
    assert await queue.lookup("scan", "task-1") is JobState.WAITING
    job = await fetched(queue)
    assert await queue.lookup("scan", "task-1") is JobState.IN_FLIGHT
    await job.nak(30)
    assert await queue.lookup("scan", "task-1") is JobState.IN_FLIGHT
    assert await queue.has_job("scan", "task-1")
    await job.ack()
    assert await queue.lookup("scan", "task-1") is JobState.ABSENT


async def exhaust(queue: WorkQueue, id_: str) -> None:
    """Take a job as often as it is given, and drop it."""
    await queue.publish("scan", id_, b"", dedupe=id_)
    assert [(await fetched(queue)).delivered for _ in range(3)] == [1, 2, 3]
    assert await queue.fetch(0.5) is None


async def test_a_job_that_nobody_will_get_any_more_is_recognized_and_cured(connection: Connection) -> None:
    queue = await queue_on(connection, "200ms")
    await exhaust(queue, "task-1")
    assert await queue.lookup("scan", "task-1") is JobState.EXHAUSTED
    assert not await queue.has_job("scan", "task-1")
    depth = await queue.depth()
    assert (depth.pending, depth.in_flight, depth.exhausted) == (0, 0, 1)
    await queue.requeue("scan", "task-1", b"again", dedupe="task-1")  # the very same id
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


async def test_requeueing_one_job_leaves_the_others_alone(connection: Connection) -> None:
    """The waiting jobs, the jobs in flight, and the state of both are unchanged."""
    queue = await queue_on(connection, "1s")
    for id_ in ("before", "this", "after", "waiting"):
        await queue.publish("scan", id_, b"", dedupe=id_)
    jobs = {job.id: job for job in [await fetched(queue) for _ in range(3)]}
    async with jobs["before"].hold(), jobs["after"].hold():
        await queue.requeue("scan", "this", b"anew", dedupe="this 2")
        assert [(await fetched(queue)).id for _ in range(2)] == ["waiting", "this"]
        await jobs["this"].ack()  # the old one's worker: too late, and it does not settle the new one
        states = {id_: await queue.lookup("scan", id_) for id_ in jobs}
        assert states == dict.fromkeys(jobs, JobState.IN_FLIGHT)
        await jobs["before"].ack()
        await jobs["after"].ack()
    left = {(job := await fetched(queue)).id: job for _ in range(2)}
    assert {id_: job.delivered for id_, job in left.items()} == {"waiting": 2, "this": 2}
    for job in left.values():
        await job.ack()
    assert await queue.depth() == Depth(0, 0, 0, 0)


async def test_requeueing_from_two_processes_at_once_leaves_a_job(connection: Connection) -> None:
    queue = await queue_on(connection)
    for _ in range(20):
        await asyncio.gather(*(queue.requeue("scan", "task-1", b"", dedupe="same") for _ in range(3)))
        assert await queue.lookup("scan", "task-1") is JobState.WAITING


# A broker that goes away


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
        await apply(connection, declared("10m"))

    again = await WorkQueue(connection, STREAM, CONSUMER, repair=repair).fetch(5)
    assert again is not None
    assert again.id == "task-1"


_DELIVERED = 4
"""Where the broker's file of a consumer counts deliveries: after a mark, a version and two numbers below 128."""


@pytest.mark.fault
async def test_a_held_job_survives_a_restart_of_the_broker(nats_server: EmbeddedServer) -> None:
    """Held again as soon as the broker is back, and acknowledged: one delivery, where the broker had time to note it."""
    async with Connection.open(nats_server.url, name="queue") as connection:
        queue = await queue_on(connection, "1500ms")
        await queue.publish("scan", "task-1", b"", dedupe="1")
        state = nats_server.data_dir / f"jetstream/$G/streams/{STREAM}/obs/{CONSUMER}/o.dat"
        job = await fetched(queue)
        await wait_until(lambda: state.read_bytes()[_DELIVERED] == 1)
        async with job.hold():
            await nats_server.kill()
            await nats_server.restart()
            await connection.up(30)
            assert await queue.fetch(2) is None
        await nats_server.kill()
        acknowledging = asyncio.create_task(job.ack())
        await nats_server.restart()
        await acknowledging
        await connection.up(30)
        assert await queue.depth() == Depth(0, 0, 0, 0)


@pytest.mark.fault
async def test_no_job_is_lost_when_the_broker_is_killed_under_load(nats_server: EmbeddedServer) -> None:
    """Four workers, two kills. Publishing is repeated with the same id; a job may be done twice, none is never done."""
    wanted = {f"task-{number}" for number in range(300)}
    done: set[str] = set()
    async with Connection.open(nats_server.url, name="queue") as connection:
        await apply(connection, declared("1s", max_deliver=20))  # each of them that a kill costs a job is one of these
        queue = WorkQueue(connection, STREAM, CONSUMER)

        async def publish() -> None:
            for id_ in sorted(wanted):
                while True:
                    try:
                        await queue.publish("scan", id_, b"", dedupe=id_)
                        break
                    except Unavailable:
                        await asyncio.sleep(0.05)

        async def work() -> None:
            while True:
                if (job := await queue.fetch(0.5)) is None:
                    continue
                with contextlib.suppress(Unavailable):  # it is away, or has forgotten the delivery: the job comes again
                    async with job.hold():
                        done.add(job.id)
                        await job.ack()

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            publishing = group.create_task(publish())
            workers = [group.create_task(work()) for _ in range(4)]
            for share in (75, 150):
                await wait_until(partial(reached, done, share), 40)
                await nats_server.kill()
                await nats_server.restart()
            await publishing
            await connection.up(30)
            await wait_until(lambda: empty(queue), 60)
            for worker in workers:
                worker.cancel()
        assert done == wanted


def reached(done: set[str], count: int) -> bool:
    return len(done) >= count


async def empty(queue: WorkQueue) -> bool:
    return await queue.depth() == Depth(0, 0, 0, 0)
