"""The work queue: a job is one worker's at a time, is not lost, and comes back from a worker that is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from functools import partial

import attrs
import pytest

from eventlog.admin.reconcile import apply_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.job import SETTLE_TIMEOUT, acknowledge
from gctd.broker.queue import Depth, JobState, WorkQueue
from tests.gctd.broker.queues import CONSUMER, STREAM, another_queue_on, declared, fetched, queue_on
from tests.support.log.nats import abort_transport
from tests.support.pace import within
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

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


@pytest.mark.parametrize(
    ("kind", "id_"), [("scan", "a.b"), ("*", "a"), ("scan", ">"), ("scan", ""), ("scan", "a b"), ("scan", "é")]
)
async def test_names_that_would_change_the_subject_are_refused(connection: Connection, kind: str, id_: str) -> None:
    queue = await queue_on(connection)
    with pytest.raises(ValueError, match="kind and id"):
        await queue.publish(kind, id_, b"", dedupe="x")


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
    """As after the kill of a broker: it does not confirm such a job. The confirmation of another queue says nothing about it."""
    queue, another = await queue_on(connection), await another_queue_on(connection)
    await another.publish("scan", "task-3", b"", dedupe="3")
    of_another_queue = await fetched(another)
    for number in range(2):
        await queue.publish("scan", f"task-{number}", b"", dedupe=str(number))
    jobs = [await fetched(queue) for _ in range(2)]
    await call(connection, f"CONSUMER.DELETE.{STREAM}.{CONSUMER}")
    await apply_declarations(connection, declared("10m"))
    await call(connection, f"STREAM.MSG.DELETE.{STREAM}", {"seq": jobs[0].sequence})
    async with asyncio.timeout(SETTLE_TIMEOUT - 2):
        await jobs[0].ack()
    with pytest.raises(OutcomeUnknown):
        await acknowledge([*jobs, of_another_queue])
    assert await another.depth() == Depth(0, 0, 0, 0)
    again = await fetched(queue)
    assert (again.id, again.delivered) == ("task-1", 1)


# The outcome of a job


async def test_the_states_of_a_job(connection: Connection) -> None:
    queue = await queue_on(connection)
    assert await queue.lookup("scan", "task-1") is JobState.ABSENT
    await queue.publish("scan", "task-1", b"", dedupe="1")
    assert await queue.lookup("scan", "task-1") is JobState.WAITING
    job = await fetched(queue)
    assert await queue.lookup("scan", "task-1") is JobState.IN_FLIGHT
    await job.nak(30)
    assert await queue.lookup("scan", "task-1") is JobState.IN_FLIGHT
    await job.ack()
    assert await queue.lookup("scan", "task-1") is JobState.ABSENT


# A broker that goes away

_DELIVERED = 4
"""Where the broker's file of a consumer counts deliveries: after a mark, a version and two numbers below 128."""


async def test_a_held_job_survives_a_restart_of_the_broker(nats_server: EmbeddedServer) -> None:
    """Held again as soon as the broker is back, and acknowledged: one delivery, where the broker had time to note it."""
    async with Connection.open(nats_server.url, name="queue") as connection:
        queue = await queue_on(connection, "3s")  # a busy machine takes more than a second for the restart
        await queue.publish("scan", "task-1", b"", dedupe="1")
        state = nats_server.data_dir / f"jetstream/$G/streams/{STREAM}/obs/{CONSUMER}/o.dat"
        job = await fetched(queue)
        await wait_until(lambda: state.read_bytes()[_DELIVERED] == 1)
        async with job.hold():
            await nats_server.kill()
            await nats_server.restart()
            await connection.up(30)
            assert await queue.fetch(3) is None
        await nats_server.kill()
        acknowledging = asyncio.create_task(job.ack())
        await nats_server.restart()
        await acknowledging
        await connection.up(30)
        assert await queue.depth() == Depth(0, 0, 0, 0)


async def test_no_job_is_lost_when_the_broker_is_killed_under_load(nats_server: EmbeddedServer) -> None:
    """Four workers, two kills. Publishing is repeated with the same id; a job may be done twice, none is never done."""
    wanted = {f"task-{number}" for number in range(300)}
    done: set[str] = set()
    async with Connection.open(nats_server.url, name="queue") as connection:
        await apply_declarations(connection, declared("1s", max_deliver=20))  # each that a kill costs a job counts
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
