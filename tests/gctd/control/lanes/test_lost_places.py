"""Jobs that get no place in a queue, or lose it: none is forgotten, and none waits that the log has moved on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import attrs
import pytest

from eventlog import AggregateId, EventLog, Unavailable
from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.control.heartbeat import Heartbeat
from gctd.control.jobs import JobTicket
from gctd.control.lanes.lanes import Lanes
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import RegisterRepo
from gctd.domain.task import TASK
from gctd.domain.task.commands import CancelTask, QueueTask, StartTask
from tests.gctd.domain.test_tasks import AT, QUEUED


@attrs.define
class Present:
    """Workers with a slot for scans and one for short jobs: their engines by their ids."""

    engines: dict[str, str] = attrs.field(factory=lambda: {"w": "native"})

    async def present(self) -> dict[str, bytes]:
        """Their heartbeats."""
        beats = {id_: Heartbeat(session="s", status="idle", engines={name: "1"}, fast=1) for id_, name in self.engines.items()}
        return {id_: beat.encoded() for id_, beat in beats.items()}


@attrs.define
class Queues:
    """The queues of jobs. They take no job while there is something that `happens` then."""

    happens: Callable[[], Awaitable[None]] | None = None
    put_in: list[str] = attrs.field(factory=list)

    def shared(self, *, fast: bool) -> Queues:
        """The queue."""
        return self

    def of(self, worker: str, *, fast: bool) -> Queues:
        """The queue of one worker."""
        return self

    async def take_back(self, kind: str, id_: str) -> None:
        """Give a job back."""
        if self.happens is not None:
            await self.happens()

    async def publish_all(self, tickets: Sequence[JobTicket]) -> None:
        """Take the jobs, or fail."""
        if self.happens is not None:
            await self.happens()
            raise Unavailable("no leader")
        self.put_in += [ticket.id for ticket in tickets]


@attrs.frozen
class Site:
    """A log, and the lanes that see each of its commits."""

    queues: Queues
    workers: Present
    lanes: Lanes
    log: MemoryLog
    commands: Commands

    async def execute(self, aggregate: AggregateId, command: Any) -> None:
        """Execute a command on a task or a repository."""
        decider = TASK if aggregate.category == TASK.category else REPO
        await self.commands.execute(cast("Any", decider), aggregate.id, command)
        last = await self.log.last(aggregate, consistent=True)
        assert last is not None
        self.lanes.saw(last)

    async def place_refused(self) -> None:
        """Try to put the jobs into queues, which fails."""
        with pytest.raises(Unavailable):
            await self.lanes.place()


@pytest.fixture
def site() -> Site:
    log, queues, workers = MemoryLog(REGISTRY), Queues(), Present()
    commands = Commands(cast("EventLog", log))
    lanes = Lanes(cast("EventLog", log), commands, cast("Any", queues), cast("Any", workers))
    return Site(queues, workers, lanes, log, commands)


async def nothing() -> None:
    """Nothing happens."""


async def test_if_the_first_queue_takes_no_job_those_for_the_next_queue_wait_too(site: Site) -> None:
    await site.execute(TASK.aggregate("task-1"), QueueTask(QUEUED))
    url = "https://example.com/b"
    await site.execute(REPO.aggregate("repo-1"), RegisterRepo(id="repo-1", url=url, clone_url=url, max_attempts=3, at=AT))
    site.queues.happens = nothing
    await site.place_refused()
    assert site.lanes.held == 2
    site.queues.happens = None
    await site.lanes.place()
    assert (sorted(site.queues.put_in), site.lanes.held) == (["repo-1", "task-1"], 0)


MOVES_ON = pytest.mark.parametrize("command", [StartTask(worker="w", session="s", at=AT), CancelTask(at=AT)])


@MOVES_ON
async def test_a_job_that_was_taken_or_cancelled_before_the_failure_does_not_wait(site: Site, command: Any) -> None:
    """The broker may have stored a job whose confirmation it did not send."""
    await site.execute(TASK.aggregate("task-1"), QueueTask(QUEUED))
    site.queues.happens = lambda: site.execute(TASK.aggregate("task-1"), command)
    await site.place_refused()
    assert site.lanes.held == 0


@MOVES_ON
async def test_a_job_that_is_taken_or_cancelled_while_it_leaves_the_queue_of_a_lost_worker_does_not_wait(
    site: Site, command: Any
) -> None:
    site.workers.engines["without-engine"] = "other"
    await site.execute(TASK.aggregate("task-1"), QueueTask(QUEUED))
    await site.lanes.place()
    del site.workers.engines["w"]
    site.queues.happens = lambda: site.execute(TASK.aggregate("task-1"), command)
    await site.lanes.look()
    assert site.lanes.held == 0


async def test_a_job_in_the_queue_of_a_lost_worker_waits_for_another_one(site: Site) -> None:
    site.workers.engines["without-engine"] = "other"
    await site.execute(TASK.aggregate("task-1"), QueueTask(QUEUED))
    await site.lanes.place()
    del site.workers.engines["w"]
    await site.lanes.look()
    assert site.lanes.held == 1
