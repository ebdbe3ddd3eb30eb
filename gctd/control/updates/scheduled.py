"""The check for updates that the server itself does, again and again: one of all servers does each round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import structlog

from eventlog import EventLog, EventLogError
from eventlog.commands import Commands
from gctd.control.updates.update_check import PROBES, RefUpdate, Updates
from gctd.domain.errors import GctdError
from gctd.domain.schedule import SCHEDULE, UPDATES, BeginUpdateCheck, EndUpdateCheck, due_at
from projections.errors import ProjectionError

_log = structlog.get_logger(__name__)

LONGEST_SLEEP = 60.0
"""Seconds after which the log is asked again for the time of the next round."""
BACK_OFF = 5.0
"""Seconds until the next try after an error."""


class ScheduledUpdates:
    """Begins a round `every` seconds after the begin of the last one on any server; 0: never."""

    def __init__(
        self,
        log: EventLog,
        commands: Commands,
        updates: Updates,
        *,
        every: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._commands = commands
        self._updates = updates
        self._every = timedelta(seconds=every)
        self._now = now
        self._server = uuid4().hex

    async def run(self) -> None:
        """Do the rounds that this server gets, until cancelled. Errors are logged."""
        while self._every:
            try:
                await asyncio.sleep(await self._until_due())
                await self.round()
            except (EventLogError, ProjectionError, GctdError) as error:
                _log.warning("scheduled check for updates waits", error=str(error))
                await asyncio.sleep(BACK_OFF)

    async def round(self) -> bool:
        """Check all repositories if a round is due and no other server begins it; return whether this one did."""
        command = BeginUpdateCheck(server=self._server, every=self._every, at=self._now())
        begun = await self._commands.execute(SCHEDULE, UPDATES, command)
        if not begun.events:
            return False
        found: list[RefUpdate] = []
        after: tuple[str, str] | None = ("", "")
        while after is not None:
            checked = await self._updates.check_all(schedule=True, after=after, limit=PROBES)
            found += checked.updates
            after = checked.after
        figures = {
            "projects": sum(one.project is not None for one in found),
            "scheduled": sum(one.scheduled for one in found),
            "failed": sum(one.error is not None for one in found),
        }
        end = EndUpdateCheck(round=begun.state.round, server=self._server, at=self._now(), **figures)
        await self._commands.execute(SCHEDULE, UPDATES, end)
        _log.info("scheduled check for updates", round=begun.state.round, **figures)
        return True

    async def _until_due(self) -> float:
        """Seconds until the next look."""
        last = await self._log.last(SCHEDULE.aggregate(UPDATES), consistent=True)
        due = due_at(None if last is None else last.state, self._every)
        return 0.0 if due is None else min(max((due - self._now()).total_seconds(), 0.0), LONGEST_SLEEP)
