"""Queues in tests: their names, and their jobs."""

from __future__ import annotations

from typing import Any

from eventlog.admin.declarations import Declarations, load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.job import Job
from gctd.broker.queue import WorkQueue

STREAM, CONSUMER = "crap_jobs_scan", "crap-workers"


def declared(ack_wait: str, **options: Any) -> Declarations:
    return load_declarations(overrides={CONSUMER: {"ack_wait": ack_wait, **options}}).only(STREAM)


async def queue_on(connection: Connection, ack_wait: str = "10m", **options: Any) -> WorkQueue:
    await apply_declarations(connection, declared(ack_wait))
    return WorkQueue(connection, STREAM, CONSUMER, **options)


async def another_queue_on(connection: Connection) -> WorkQueue:
    await apply_declarations(connection, load_declarations().only("crap_jobs_lanes"))
    return WorkQueue(connection, "crap_jobs_lanes", "crap-fast", prefix="crap.lane.fast")


async def fetched(queue: WorkQueue, within: float = 20.0) -> Job:
    job = await queue.fetch(within)
    assert job is not None
    return job


async def pulls_waiting(connection: Connection, count: int) -> bool:
    info = await call(connection, f"CONSUMER.INFO.{STREAM}.{CONSUMER}")
    return bool(info["num_waiting"] == count)
