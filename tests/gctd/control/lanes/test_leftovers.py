"""Jobs leave the queues that no task and no registration needs. All others stay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import attrs
import pytest
import pytest_asyncio

from eventlog import AggregateId, Commit, EventLog
from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.jetstream.connection import Connection
from eventlog.testing.memory import MemoryLog
from gctd.broker.queue import WorkQueue
from gctd.control.lanes.leftovers import Leftovers
from gctd.control.lanes.queues import LANES_STREAM, SCAN_STREAM, JobQueues
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import FinishDiscovery, RegisterRepo, StartDiscovery
from gctd.domain.task import TASK
from gctd.domain.task.commands import CancelTask, DropTask, FailTask, QueueTask, RetryTask, StartTask, TaskCommand
from tests.gctd.domain.test_tasks import COMPLETE, QUEUED

pytestmark = pytest.mark.real

AT = datetime.now(UTC)
START = StartTask(worker="w", session="s", at=AT)
FAIL = FailTask(attempt=1, session="s", reason="no", permanent=False, retry_at=AT + timedelta(hours=1), at=AT)


@attrs.frozen
class Site:
    """A log, and the queues."""

    log: MemoryLog
    commands: Commands
    queues: JobQueues

    async def task(self, id_: str, *commands: TaskCommand) -> None:
        """A task after these commands, with a job in the lane of scans."""
        queued = QueueTask(attrs.evolve(QUEUED, id=id_))
        for command in (queued, *commands):
            await self.commands.execute(TASK, id_, command)
        await self.put(self.queues.scan, "scan", id_)

    async def repo(self, id_: str, *commands: Any) -> None:
        """A registration after these commands, with a job in the lane of short jobs."""
        url = f"https://example.com/{id_}"
        for command in (RegisterRepo(id=id_, url=url, clone_url=url, max_attempts=3, at=AT), *commands):
            await self.commands.execute(REPO, id_, command)
        await self.put(self.queues.fast, "discover", id_)

    async def put(self, queue: WorkQueue, kind: str, id_: str, number: int = 1) -> None:
        """Put a job into a queue."""
        await queue.publish(kind, id_, b"{}", dedupe=f"{id_} {number}")

    async def left(self, log: EventLog | None = None, known: tuple[str, ...] = ()) -> set[str]:
        """The ids of the jobs that are left after leftovers are removed. One look is enough."""
        leftovers = Leftovers(log or cast("EventLog", self.log), self.queues, every=0.0)
        await leftovers.remove(lambda _, id_: id_ in known)
        return {id_ for _, id_ in (await self.queues.jobs()).keys}


@pytest_asyncio.fixture
async def site(nats_url: str) -> AsyncIterator[Site]:
    async with Connection.open(nats_url, name="test") as connection:
        await apply_declarations(connection, load_declarations().only(SCAN_STREAM, LANES_STREAM))
        log = MemoryLog(REGISTRY)
        yield Site(log, Commands(cast("EventLog", log)), JobQueues(connection))


async def test_jobs_of_ended_tasks_go_and_needed_jobs_stay(site: Site) -> None:
    await site.task("waits")
    await site.task("runs", START)
    await site.task("fails-once", START, FAIL)
    await site.task("completed", START, COMPLETE)
    await site.task("cancelled", CancelTask(at=AT))
    await site.task("dropped", DropTask(at=AT))
    await site.put(site.queues.scan, "scan", "never-queued")
    await site.repo("registering")
    found = FinishDiscovery(attempt=1, session="s", commit_sha="a" * 40, default_ref="main", projects=(), at=AT)
    await site.repo("ready", StartDiscovery(worker="w", session="s", at=AT), found)
    assert await site.left() == {"waits", "runs", "fails-once", "registering"}


async def test_second_copies_go_from_every_queue_also_one_that_a_lost_worker_has(site: Site) -> None:
    await site.queues.prepare("w")
    own = site.queues.of("w", fast=False)
    await site.task("task-1", START, COMPLETE)
    await site.put(own, "scan", "task-1")
    await site.put(own, "scan", "task-1", 2)
    taken = await own.fetch(5)
    assert taken is not None
    assert await site.left() == set()
    assert (await own.depth()).pending == 0
    await taken.ack()
    assert (await own.depth()).in_flight == 0


async def test_a_job_that_this_control_plane_knows_stays(site: Site) -> None:
    """Its commit may be on the way."""
    await site.task("task-1", CancelTask(at=AT))
    assert await site.left(known=("task-1",)) == {"task-1"}


@attrs.frozen
class Interrupted:
    """A log: something happens just after it is read."""

    log: MemoryLog
    happens: Callable[[], Awaitable[None]]

    async def last(self, aggregate: AggregateId, *, consistent: bool) -> Commit | None:
        """The last commit."""
        found = await self.log.last(aggregate, consistent=consistent)
        await self.happens()
        return found


async def test_a_job_of_a_retry_that_comes_at_that_moment_stays(site: Site) -> None:
    await site.task("task-1", CancelTask(at=AT))

    async def retried() -> None:
        await site.commands.execute(TASK, "task-1", RetryTask(attempts=3, at=AT))
        await site.put(site.queues.scan, "scan", "task-1", 2)

    assert await site.left(cast("EventLog", Interrupted(site.log, retried))) == {"task-1"}
    assert (await site.queues.scan.depth()).pending == 1, "the job of the cancelled task is gone"
