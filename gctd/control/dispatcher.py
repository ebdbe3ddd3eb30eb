"""The dispatcher: follows the log and puts a job into the queue for every repository and task that begins to wait.

Its checkpoint moves after the jobs are in the queue, so a crash in between repeats some: the queue drops those by message id,
and a worker forgets a job whose task has moved on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from eventlog import Commit, EventLog, EventLogError
from eventlog.queue import WorkQueue
from gctd.control.jobs import JobKind, JobTicket, wanted
from projections.errors import ProjectionError
from projections.model import Projection
from projections.store import Checkpoint, Outcome, Step, Store
from projections.tracker.queries import TrackerQueries

_log = structlog.get_logger(__name__)

DISPATCHER = Projection("dispatcher", 1, (), {})
"""It has no tables: its effect is jobs. As a projection it has a checkpoint that only one process can move."""
BACK_OFF = 1.0
"""Seconds before it goes on after an error."""


class Dispatcher:
    """Brings the queue up to the log, for as long as `run` runs."""

    def __init__(self, log: EventLog, queue: WorkQueue, store: Store, queries: TrackerQueries) -> None:
        self._log = log
        self._queue = queue
        self._store = store
        self._queries = queries
        self.dispatched = 0
        """Jobs put into the queue since the start."""

    async def run(self) -> None:
        """Dispatch until cancelled; errors are logged and followed by a new start from the checkpoint."""
        while True:
            try:
                await self._follow()
            except (EventLogError, ProjectionError) as error:
                _log.warning("dispatcher waits", error=str(error))
                await asyncio.sleep(BACK_OFF)

    async def _follow(self) -> None:
        before = (await self._store.checkpoints()).get(DISPATCHER.name)
        head = await self._log.head()
        if before is not None and before.incarnation != head.incarnation:
            await self._store.forget([DISPATCHER])
            before = None
        async for commits in self._log.follow(after=before.sequence if before else 0, incarnation=head.incarnation):
            await self._dispatch(commits, replaying=commits[-1].sequence <= head.last)
            after = Checkpoint(
                projection=DISPATCHER.name,
                version=DISPATCHER.version,
                incarnation=head.incarnation,
                sequence=commits[-1].sequence,
                applied=(before.applied if before else 0) + len(commits),
            )
            moved = await self._store.advance([Step(projection=DISPATCHER, before=before, after=after, changes=())])
            if moved is Outcome.MISMATCH:
                _log.info("another dispatcher is at work", sequence=after.sequence)
                return
            before = after

    async def _dispatch(self, commits: Sequence[Commit], *, replaying: bool) -> None:
        tickets = [(commit, ticket) for commit in commits if (ticket := wanted(commit)) is not None]
        if replaying:
            tickets = [(commit, ticket) for commit, ticket in tickets if not await self._moved_on(commit, ticket)]
        async with asyncio.TaskGroup() as group:
            for _, ticket in tickets:
                group.create_task(self._queue.publish(ticket.kind, ticket.id, ticket.payload, dedupe=ticket.dedupe))
        self.dispatched += len(tickets)

    async def _moved_on(self, commit: Commit, ticket: JobTicket) -> bool:
        """Whether the read model knows of something later: then there is no such job any more, or a newer one."""
        find = self._queries.repo if ticket.kind is JobKind.DISCOVER else self._queries.task
        found = await find(ticket.id)
        return found is not None and found.sequence > commit.sequence
