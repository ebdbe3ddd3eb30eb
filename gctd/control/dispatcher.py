"""The dispatcher: follows the log, and queues a job for every repository and task that begins to wait.

Its checkpoint moves a moment after it has seen a commit, so a crash in between repeats some jobs. A queue drops them by message
id, and a worker drops a job whose task has moved on. Jobs that waited for a place in a queue are in the tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from eventlog import Commit, EventLog, EventLogError, Head, UndecodableCommit
from gctd.control.bulkhead import Bulkhead
from gctd.control.jobs import JobKind, JobTicket, wanted
from gctd.control.lanes.lanes import Lanes
from gctd.domain.repo import REPO
from gctd.domain.task import TASK
from gctd.readmodel.queries import TrackerQueries
from projections import Checkpoint, CheckpointOutcome, Projection, ProjectionError, Step, Store

_log = structlog.get_logger(__name__)

DISPATCHER = Projection("dispatcher", 1, (), {})
"""The projection has no tables: its effect is jobs. It has a checkpoint that only one process can move."""
KEEP_EVERY = 0.5
"""Seconds between two checkpoints, at least."""
MOST_RECOVERED = 1000
"""Waiting tasks and repositories that are looked up at the start."""
BACK_OFF = 1.0
"""Seconds of wait after an error."""


class Dispatcher:
    """Brings the queue up to the log while `run` is active."""

    def __init__(self, log: EventLog, lanes: Lanes, store: Store, queries: TrackerQueries) -> None:
        self._log = log
        self._lanes = lanes
        self._store = store
        self._queries = queries
        self._bulkhead = Bulkhead("dispatcher")
        self._seen = ("", 0)
        """Incarnation of the log, and the sequence up to which the lanes have seen its commits."""

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
        incarnation, sequence = self._seen
        if incarnation != head.incarnation or sequence < reached.sequence:
            # Commits that another dispatcher saw have ended some of the jobs.
            self._lanes.forget()
            self._seen = (head.incarnation, reached.sequence)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep(reached))
            reading = group.create_task(self._read(reached, head))
            recovering = group.create_task(self._recover())
            await asyncio.wait({keeping, reading}, return_when=asyncio.FIRST_COMPLETED)
            for task in (keeping, reading, recovering):
                task.cancel()

    async def _read(self, reached: _Reached, head: Head) -> None:
        async for commits in self._log.follow(after=reached.sequence, incarnation=head.incarnation):
            await self._dispatch(commits, replaying=commits[-1].sequence <= head.last)
            reached.advance(commits)
            self._seen = max(self._seen, (head.incarnation, reached.sequence))

    async def _keep(self, reached: _Reached) -> None:
        """Move the checkpoint forward, seldom: it only limits the part of the log that a new start has to read."""
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
        for commit in commits:
            try:
                if replaying and (ticket := wanted(commit)) is not None and await self._moved_on(commit, ticket):
                    continue
                self._lanes.saw(commit)
            except UndecodableCommit as error:  # the projector parks its aggregate; other jobs continue
                _log.error("a commit cannot be read: no job is put into a queue", sequence=commit.sequence, reason=str(error))
        await self._lanes.place()

    async def _recover(self) -> None:
        """Find the jobs that an earlier process had not put into a queue yet; the reaper finds those beyond MOST_RECOVERED."""
        tasks = await self._queries.tasks_waiting(since=datetime.now(UTC))
        waiting = [(REPO.aggregate(repo.id), JobKind.DISCOVER) for repo in await self._queries.repos_waiting()]
        waiting += [(TASK.aggregate(task.id), JobKind.SCAN) for task in tasks]
        for aggregate, kind in waiting[:MOST_RECOVERED]:
            if not self._lanes.knows(kind, aggregate.id):
                with self._bulkhead.around(aggregate.id):
                    await self._lanes.recover(aggregate, kind)

    async def _moved_on(self, commit: Commit, ticket: JobTicket) -> bool:
        """Whether the read model knows of something later: then there is no such job any more, or a newer one."""
        find = self._queries.repo if ticket.kind is JobKind.DISCOVER else self._queries.task
        found = await find(ticket.id)
        return found is not None and found.sequence > commit.sequence


class _Reached:
    """Progress of the dispatcher: `kept` is the stored checkpoint."""

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
