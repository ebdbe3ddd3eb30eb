"""Removing repositories: the registration ends first, then its tasks, analyses and verdicts leave the tables.

Each row of the tables belongs to one aggregate, so each aggregate gets an event. If the server ends between two of these
events, a sweep appends the missing ones. The log keeps the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import structlog

from eventlog import Commands, Context, Decider, EventLog, EventLogError
from gctd.control.bulkhead import Bulkhead
from gctd.control.requests.tracker import Tracker
from gctd.domain.errors import NotFound
from gctd.domain.remote.urls import repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.state import RepoStatus
from gctd.domain.task import TASK
from gctd.domain.task.commands import DropTask
from gctd.domain.verdict import VERDICT, DropVerdict
from gctd.readmodel.queries import TrackerQueries
from projections import ProjectionError

_log = structlog.get_logger(__name__)

SWEEP = 30.0
"""Seconds between two sweeps."""
AT_ONCE = 64
"""Aggregates that are changed concurrently."""


@attrs.frozen
class Removals:
    """Removes repositories. `caught_up` waits until the read model has all commits of the log."""

    _log: EventLog
    _commands: Commands
    _queries: TrackerQueries
    _tracker: Tracker
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)

    async def run(self) -> None:
        """Sweep until cancelled; errors are logged, and the next sweep tries again."""
        bulkhead = Bulkhead("removals")
        while True:
            try:
                await self._caught_up()
                for id_ in await self._queries.unregistered():
                    with bulkhead.around(id_):
                        await self._clear(id_, None)
            except (EventLogError, ProjectionError) as error:
                _log.warning("removal waits", error=str(error))
            await asyncio.sleep(SWEEP)

    async def remove(self, repo_url: str, context: Context) -> int:
        """Remove a repository: end its unfinished tasks, and take its rows out of the tables.

        Returns the sequence of the last commit. Raises BadInput, and NotFound if the repository is not registered.
        """
        removed = await self._tracker.remove(repo_url, context)
        return max(removed.sequence, await self._clear(removed.state.id, context))

    async def finish(self, repo_url: str, context: Context) -> None:
        """Finish an interrupted removal, so that a new registration begins without old rows. Raises BadInput."""
        await self._clear(repo_id(self._tracker.parse_url(repo_url).canonical), context)

    async def _clear(self, id_: str, context: Context | None) -> int:
        """Drop all that is left of a removed repository; a registered one stays. Returns the last sequence, or 0."""
        removed = await self._removed_at(id_)
        if removed is None:
            return 0
        await self._caught_up()
        tasks, verdicts = await self._queries.tasks_left(id_), await self._queries.verdicts_left(id_)
        # Tasks of a new registration stay.
        if await self._removed_at(id_) != removed:
            return 0
        now = datetime.now(UTC)
        plain = None if context is None else Context(correlation=context.correlation, traceparent=context.traceparent)
        limit = asyncio.Semaphore(AT_ONCE)

        async def drop(decider: Decider[Any, Any, Any], aggregate: str, command: object) -> int:
            async with limit:
                try:
                    return (await self._commands.execute(decider, aggregate, command, plain)).sequence
                except NotFound:
                    return 0

        sequences = await asyncio.gather(
            *(drop(TASK, task, DropTask(at=now)) for task in tasks),
            *(drop(VERDICT, verdict, DropVerdict(at=now)) for verdict in verdicts),
        )
        return max(sequences, default=0)

    async def _removed_at(self, id_: str) -> int | None:
        """Return the sequence at which a repository was removed, None if it is registered or was never registered."""
        commit = await self._log.last(REPO.aggregate(id_), consistent=True)
        return commit.sequence if commit is not None and commit.state.status is RepoStatus.REMOVED else None
