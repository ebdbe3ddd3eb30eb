"""The reaper brings every task and every registration to an end, even if its workers are lost.

It reads the waiting and running work from the read model, the present workers, and the queue. Each of its actions is a command
under a guard. So it may run in several processes, and a worker that was only slow wins or loses cleanly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import structlog

from eventlog import AggregateId, Commands, Context, Decider, EventLog, EventLogError, until_tick
from gctd.broker.presence import Presence
from gctd.control.bulkhead import Bulkhead
from gctd.control.heartbeat import Heartbeat, decoded
from gctd.control.jobs import JobKind
from gctd.control.lanes.lanes import Lanes
from gctd.domain.options import LONGEST
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import LoseDiscovery
from gctd.domain.task import TASK
from gctd.domain.task.commands import ExpireTask, LoseTask
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import RepoView, TaskView
from projections import ProjectionError

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class ReaperTimeouts:
    """Waiting times of the reaper, in seconds.

    - `sweep`: between two sweeps.
    - `absence`: from the first sweep without a worker's presence until its attempts are given up.
    - `presence`: the life of an announcement of a worker. An attempt that is not among its jobs for that time is given up.
    - `job`: until waiting work gets a new job if the queue has none for it.
    - `queue`: until waiting work that is due expires because no worker took it.
    - `lease`: the longest time that any attempt may take: the longest time limit of a project, and an hour for its end.
    """

    sweep: float = 2.0
    absence: float = 6.0
    presence: float = 15.0
    job: float = 15.0
    queue: float = 86_400.0
    lease: float = LONGEST + 3600.0


IDLE = 3
"""How many times longer the pause between two sweeps is while there is no work."""
MOST_AT_ONCE = 200
"""Waiting tasks whose jobs are looked up in one sweep."""


@attrs.define(eq=False)
class Reaper:
    """Sweeps while `run` is active."""

    _log: EventLog
    _commands: Commands
    _queries: TrackerQueries
    _lanes: Lanes
    _presence: Presence
    _patience: ReaperTimeouts
    _missing: dict[str, float] = attrs.field(factory=dict, init=False)
    _unnamed: dict[tuple[str, str], float] = attrs.field(factory=dict, init=False)
    """When an attempt, by session and id of its aggregate, was first not among the jobs of its worker."""
    _looked: dict[str, float] = attrs.field(factory=dict, init=False)
    _bulkhead: Bulkhead = attrs.field(factory=lambda: Bulkhead("reaper"), init=False)

    async def run(self) -> None:
        """Sweep until cancelled, at a slow rate while there is no work. An error is logged, and the next sweep follows."""
        while True:
            pause = self._patience.sweep
            try:
                if not await self.sweep():
                    pause *= IDLE
            except (EventLogError, ProjectionError) as error:
                # A failed query does not prove absence.
                self._missing.clear()
                self._unnamed.clear()
                _log.warning("reaper waits", error=str(error))
            await asyncio.sleep(until_tick(pause))

    async def sweep(self) -> bool:
        """Check all waiting and running work once. Return whether there is any."""
        running = await self._queries.tasks_running()
        repos = await self._queries.repos_waiting()
        rows: list[TaskView | RepoView] = [*running, *repos]
        held = {(row.session, row.id) for row in rows if row.session is not None}
        sessions = {session for session, _ in held}
        self._missing = {session: since for session, since in self._missing.items() if session in sessions}
        self._unnamed = {attempt: since for attempt, since in self._unnamed.items() if attempt in held}
        present = await self._announced() if held else {}
        for row in running:
            if reason := self._lost(present, row):
                with self._bulkhead.around(row.id):
                    await self._execute(TASK, row.id, LoseTask(attempt=row.attempt, reason=reason, at=datetime.now(UTC)))
        for repo in repos:
            with self._bulkhead.around(repo.id):
                await self._look_at_repo(repo, present)
        since = datetime.now(UTC) - timedelta(seconds=self._patience.job)
        waiting = await self._queries.tasks_waiting(since=since)
        await self._look_at_waiting(waiting)
        return bool(rows or waiting)

    async def _announced(self) -> dict[str, Heartbeat]:
        """Return the announcement of each present worker."""
        return {worker: decoded(payload) for worker, payload in (await self._presence.present()).items()}

    def _lost(self, present: dict[str, Heartbeat], row: TaskView | RepoView) -> str | None:
        """Return the reason if an attempt is taken for lost, else None."""
        if row.session is None or row.lease_since is None:
            return None
        if self._age(row.lease_since) > self._patience.lease:
            return f"the attempt took longer than {self._patience.lease:.0f} s"
        beat = present.get(row.worker or "")
        if beat is not None and beat.session == row.session:
            self._missing.pop(row.session, None)
            return f"worker {row.worker} does not work on it" if self._dropped(beat, row.id) else None
        # Not at the first look: the replica of the broker that answers may have an earlier session of the worker.
        if beat is not None and row.session in self._missing:
            return f"worker {row.worker} was restarted"
        since = self._missing.setdefault(row.session, time.monotonic())
        return f"worker {row.worker} is gone" if time.monotonic() - since >= self._patience.absence else None

    def _dropped(self, beat: Heartbeat, id_: str) -> bool:
        """Return whether a worker has an attempt without work on it.

        The start of the attempt had no answer, or its end could not be reported while the broker was away.
        """
        attempt, now = (beat.session, id_), time.monotonic()
        if id_ in beat.tasks:
            self._unnamed.pop(attempt, None)
            return False
        # An announcement that is present after this time is later than the first look.
        return now - self._unnamed.setdefault(attempt, now) >= self._patience.presence

    async def _look_at_repo(self, repo: RepoView, present: dict[str, Heartbeat]) -> None:
        if repo.session is not None:
            if reason := self._lost(present, repo):
                command = LoseDiscovery(attempt=repo.attempt, reason=reason, at=datetime.now(UTC))
                await self._execute(REPO, repo.id, command)
        elif self._age(repo.requested) > self._patience.queue:
            reason = "no worker took it up in time"
            command = LoseDiscovery(attempt=repo.attempt, reason=reason, at=datetime.now(UTC), final=True)
            await self._execute(REPO, repo.id, command)
        else:
            await self._give_job(JobKind.DISCOVER, REPO.aggregate(repo.id), repo.retry_at or repo.updated_at)

    async def _look_at_waiting(self, waiting: Sequence[TaskView]) -> None:
        looked = 0
        for row in waiting:
            with self._bulkhead.around(row.id):
                due = row.retry_at or row.waiting_since
                if self._age(due) > self._patience.queue:
                    command = ExpireTask(attempt=row.attempt, reason="no worker took it up in time", at=datetime.now(UTC))
                    await self._execute(TASK, row.id, command)
                elif looked < MOST_AT_ONCE:
                    looked += await self._give_job(JobKind.SCAN, TASK.aggregate(row.id), due)
        ids = {row.id for row in waiting}
        self._looked = {id_: at for id_, at in self._looked.items() if id_ in ids}

    async def _execute(self, decider: Decider[Any, Any, Any], id_: str, command: object) -> None:
        await self._commands.execute(decider, id_, command, await self._context(decider.aggregate(id_)))

    async def _context(self, aggregate: AggregateId) -> Context:
        """Return the context of the aggregate's last event: actions of the reaper continue its trace."""
        last = await self._log.last(aggregate)
        return Context() if last is None else last.consequence.in_new_span()

    async def _give_job(self, kind: JobKind, aggregate: AggregateId, due: str) -> bool:
        """Queue a job if none is known to wait. Return whether one was looked up."""
        id_ = aggregate.id
        if self._age(due) < self._patience.job or self._lanes.knows(kind, id_):
            return False
        if time.monotonic() - self._looked.get(id_, -self._patience.job) < self._patience.job:
            return False
        self._looked[id_] = time.monotonic()
        await self._lanes.recover(aggregate, kind)
        return True

    def _age(self, time_text: str) -> float:
        return (datetime.now(UTC) - datetime.fromisoformat(time_text)).total_seconds()
