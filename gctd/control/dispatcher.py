"""The dispatcher: follows the log and puts a job into the queue for every repository and task that begins to wait.

Its checkpoint moves a moment after the jobs are in the queue, so a crash in between repeats some: the queue drops those by
message id, and a worker forgets a job whose task has moved on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from eventlog import Commit, EventLog, EventLogError, Head, UndecodableCommit
from eventlog.broker.queue import WorkQueue
from gctd.control.jobs import JobKind, JobTicket, wanted
from gctd.readmodel.queries import TrackerQueries
from projections.errors import ProjectionError
from projections.model import Projection
from projections.store import Checkpoint, CheckpointOutcome, Step, Store

_log = structlog.get_logger(__name__)

DISPATCHER = Projection("dispatcher", 1, (), {})
"""It has no tables: its effect is jobs. As a projection it has a checkpoint that only one process can move."""
KEEP_EVERY = 0.5
"""Seconds between two checkpoints, at least."""
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
            except* (EventLogError, ProjectionError) as errors:
                _log.warning("dispatcher waits", error=str(errors.exceptions[0]))
                await asyncio.sleep(BACK_OFF)

    async def _follow(self) -> None:
        before = (await self._store.checkpoints()).get(DISPATCHER.name)
        head = await self._log.head()
        if before is not None and before.incarnation != head.incarnation:
            await self._store.forget([DISPATCHER])
            before = None
        reached = _Reached(before, incarnation=head.incarnation)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep(reached))
            reading = group.create_task(self._read(reached, head))
            await asyncio.wait({keeping, reading}, return_when=asyncio.FIRST_COMPLETED)
            keeping.cancel()
            reading.cancel()

    async def _read(self, reached: _Reached, head: Head) -> None:
        async for commits in self._log.follow(after=reached.sequence, incarnation=head.incarnation):
            await self._dispatch(commits, replaying=commits[-1].sequence <= head.last)
            reached.advance(commits)

    async def _keep(self, reached: _Reached) -> None:
        """Move the checkpoint to what was reached, now and then: seldom, since nothing depends on it but what is read again."""
        while True:
            await reached.news.wait()
            await asyncio.sleep(KEEP_EVERY)
            reached.news.clear()
            before, after = reached.kept, reached.checkpoint
            moved = await self._store.advance([Step(projection=DISPATCHER, before=before, after=after, changes=())])
            if moved is CheckpointOutcome.MISMATCH:
                _log.info("another dispatcher is at work", sequence=after.sequence)
                return
            reached.kept = after

    async def _dispatch(self, commits: Sequence[Commit], *, replaying: bool) -> None:
        tickets = [(commit, ticket) for commit in commits if (ticket := _wanted(commit)) is not None]
        if replaying:
            tickets = [(commit, ticket) for commit, ticket in tickets if not await self._moved_on(commit, ticket)]
        await self._queue.publish_all([ticket for _, ticket in tickets])
        for commit, ticket in tickets:
            trace = commit.trace
            _log.debug("job put into the queue", kind=ticket.kind, id=ticket.id, trace_id=trace and trace.trace_id)
        self.dispatched += len(tickets)

    async def _moved_on(self, commit: Commit, ticket: JobTicket) -> bool:
        """Whether the read model knows of something later: then there is no such job any more, or a newer one."""
        find = self._queries.repo if ticket.kind is JobKind.DISCOVER else self._queries.task
        found = await find(ticket.id)
        return found is not None and found.sequence > commit.sequence


def _wanted(commit: Commit) -> JobTicket | None:
    try:
        return wanted(commit)
    except UndecodableCommit as error:  # its aggregate is parked by the projector; the jobs of the others go on
        _log.error("a commit cannot be read: no job is put into the queue", sequence=commit.sequence, reason=str(error))
        return None


class _Reached:
    """How far the dispatcher has come: `kept` is the checkpoint that is stored."""

    def __init__(self, kept: Checkpoint | None, *, incarnation: str) -> None:
        self.kept = kept
        self.sequence = kept.sequence if kept else 0
        self.news = asyncio.Event()
        self._applied = kept.applied if kept else 0
        self._incarnation = incarnation

    def advance(self, commits: Sequence[Commit]) -> None:
        """The jobs of these commits are in the queue."""
        self.sequence = commits[-1].sequence
        self._applied += len(commits)
        self.news.set()

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint to be stored."""
        return Checkpoint(
            projection=DISPATCHER.name,
            version=DISPATCHER.version,
            incarnation=self._incarnation,
            sequence=self.sequence,
            applied=self._applied,
        )
