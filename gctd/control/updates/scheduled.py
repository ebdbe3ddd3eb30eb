"""The check for updates that the server itself does, again and again: one of all servers does each round."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import attrs
import structlog

from eventlog import Commands, EventLog, EventLogError
from gctd.control.updates.update_check import PROBES, RefUpdate, Updates
from gctd.domain.errors import GctdError
from gctd.domain.schedule import SCHEDULE, UPDATES, BeginUpdateCheck, EndUpdateCheck, due_at
from projections import ProjectionError

_log = structlog.get_logger(__name__)

LONGEST_SLEEP = 60.0
"""Seconds after which the log is asked again for the time of the next round."""
BACK_OFF = 5.0
"""Seconds until the next try after an error."""


@attrs.frozen
class ScheduledUpdates:
    """Begins a round the time `every` after the begin of the last one on any server; 0: never."""

    _log: EventLog
    _commands: Commands
    _updates: Updates
    _every: timedelta = attrs.field(kw_only=True)
    _server: str = attrs.field(factory=lambda: uuid4().hex, init=False)

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
        command = BeginUpdateCheck(server=self._server, every=self._every, at=datetime.now(UTC))
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
        end = EndUpdateCheck(round=begun.state.round, server=self._server, at=datetime.now(UTC), **figures)
        await self._commands.execute(SCHEDULE, UPDATES, end)
        _log.info("scheduled check for updates", round=begun.state.round, **figures)
        return True

    async def _until_due(self) -> float:
        """Seconds until the next look."""
        last = await self._log.last(SCHEDULE.aggregate(UPDATES), consistent=True)
        due = due_at(None if last is None else last.state, self._every)
        return 0.0 if due is None else min(max((due - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_SLEEP)
