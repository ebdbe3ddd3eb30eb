"""The reaper: brings every task and every registration to an end, whatever became of the workers (DESIGN, promise I4).

It looks at what the read model shows as waiting or running, at which workers are present, and at the queue. All that it does is
a command under a guard, so it may run in several processes, and a worker that was only slow wins or loses cleanly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import structlog

from eventlog import AggregateId, Context, Decider, EventLog, EventLogError
from eventlog.broker.presence import Presence
from eventlog.broker.queue import JobState, WorkQueue
from eventlog.commands import Commands
from gctd.control.heartbeat import decoded
from gctd.control.jobs import JobKind, ticket
from gctd.domain.errors import GctdError
from gctd.domain.repo import REPO, LoseDiscovery
from gctd.domain.task import TASK, ExpireTask, LoseTask
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import RepoView, TaskView
from projections.errors import ProjectionError

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class Timeouts:
    """How long the reaper waits, in seconds.

    `sweep`: between two looks; `absence`: from the first look at which a worker's presence is missing until its attempts are
    given up; `job`: until what waits is given a job again if the queue has none for it; `queue`: until what nobody took up
    expires; `lease`: the longest that any attempt may take.
    """

    sweep: float = 2.0
    absence: float = 6.0
    job: float = 15.0
    queue: float = 86_400.0
    lease: float = 43_200.0


MOST_AT_ONCE = 200
"""Waiting tasks whose jobs are looked up in one sweep."""


class Reaper:
    """Sweeps for as long as `run` runs."""

    def __init__(
        self,
        log: EventLog,
        commands: Commands,
        queries: TrackerQueries,
        queue: WorkQueue,
        presence: Presence,
        patience: Timeouts,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._commands = commands
        self._queries = queries
        self._queue = queue
        self._presence = presence
        self._patience = patience
        self._now = now
        self._missing: dict[str, float] = {}
        self._looked: dict[str, float] = {}

    async def run(self) -> None:
        """Sweep until cancelled; errors are logged, and the next sweep begins afresh."""
        while True:
            try:
                await self.sweep()
            except (EventLogError, ProjectionError, GctdError) as error:
                # What could not be asked is not known to be missing.
                self._missing.clear()
                _log.warning("reaper waits", error=str(error))
            await asyncio.sleep(self._patience.sweep)

    async def sweep(self) -> None:
        """Look once at all that waits or runs."""
        present = {worker: decoded(payload).session for worker, payload in (await self._presence.present()).items()}
        running = await self._queries.tasks_running()
        repos = await self._queries.repos_waiting()
        rows: list[TaskView | RepoView] = [*running, *repos]
        held = {row.session for row in rows if row.session is not None}
        self._missing = {session: since for session, since in self._missing.items() if session in held}
        for row in running:
            if reason := self._lost(present, row):
                await self._execute(TASK, row.id, LoseTask(attempt=row.attempt, reason=reason, at=self._now()))
        for repo in repos:
            await self._look_at_repo(repo, present)
        since = self._now() - timedelta(seconds=self._patience.job)
        await self._look_at_waiting(await self._queries.tasks_waiting(since=since))

    def _lost(self, present: dict[str, str], row: TaskView | RepoView) -> str | None:
        """Why an attempt's worker is taken for lost, if it is."""
        if row.session is None or row.lease_since is None:
            return None
        if self._age(row.lease_since) > self._patience.lease:
            return f"the attempt took longer than {self._patience.lease:.0f} s"
        session = present.get(row.worker or "")
        if session == row.session:
            self._missing.pop(row.session, None)
            return None
        if session is not None:
            return f"worker {row.worker} was started anew"
        since = self._missing.setdefault(row.session, time.monotonic())
        return f"worker {row.worker} is gone" if time.monotonic() - since >= self._patience.absence else None

    async def _look_at_repo(self, repo: RepoView, present: dict[str, str]) -> None:
        if repo.session is not None:
            if reason := self._lost(present, repo):
                command = LoseDiscovery(attempt=repo.attempt, reason=reason, at=self._now())
                await self._execute(REPO, repo.id, command)
        elif self._age(repo.requested) > self._patience.queue:
            reason = "no worker took it up in time"
            command = LoseDiscovery(attempt=repo.attempt, reason=reason, at=self._now(), final=True)
            await self._execute(REPO, repo.id, command)
        else:
            await self._give_job(JobKind.DISCOVER, REPO.aggregate(repo.id), repo.retry_at or repo.updated_at, repo.sequence)

    async def _look_at_waiting(self, waiting: Sequence[TaskView]) -> None:
        looked = 0
        for row in waiting:
            if self._age(row.waiting_since) > self._patience.queue:
                command = ExpireTask(attempt=row.attempt, reason="no worker took it up in time", at=self._now())
                await self._execute(TASK, row.id, command)
            elif looked < MOST_AT_ONCE:
                due = row.retry_at or row.waiting_since
                looked += await self._give_job(JobKind.SCAN, TASK.aggregate(row.id), due, row.sequence)
        ids = {row.id for row in waiting}
        self._looked = {id_: at for id_, at in self._looked.items() if id_ in ids}

    async def _execute(self, decider: Decider[Any, Any, Any], id_: str, command: object) -> None:
        await self._commands.execute(decider, id_, command, await self._context(decider.aggregate(id_)))

    async def _context(self, aggregate: AggregateId) -> Context:
        """What is done about an aggregate goes on in the trace of what happened to it last."""
        last = await self._log.last(aggregate)
        return Context() if last is None else last.consequence.in_new_span()

    async def _give_job(self, kind: JobKind, aggregate: AggregateId, due: str, sequence: int) -> bool:
        """Put a job in the queue where none is there to be taken; say whether the queue was asked."""
        id_ = aggregate.id
        if self._age(due) < self._patience.job:
            return False
        if time.monotonic() - self._looked.get(id_, -self._patience.job) < self._patience.job:
            return False
        self._looked[id_] = time.monotonic()
        if await self._queue.lookup(kind, id_) is not JobState.WAITING:
            job = ticket(kind, id_, sequence, await self._context(aggregate))
            await self._queue.requeue(kind, id_, job.payload, dedupe=f"{job.dedupe}:{time.time_ns()}")
            _log.info("job given again", kind=kind.value, id=id_)
        return True

    def _age(self, time_text: str) -> float:
        return (self._now() - datetime.fromisoformat(time_text)).total_seconds()
