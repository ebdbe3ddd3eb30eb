"""The aggregate of the scheduled check for updates: rounds, each begun by one server.

A server claims a round by an append under the guard of the aggregate, so one of several does it. A round that was begun and not
ended is claimed again after ABANDONED: the server that began it has stopped. A check schedules nothing twice, so this is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from eventlog import Decider
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.schedule"
UPDATES = "updates"
"""The id of the one aggregate."""
ABANDONED = timedelta(minutes=15)
"""Time after which a round that has not ended counts as abandoned."""


@REGISTRY.event("UpdateCheckBegun")
@attrs.frozen(kw_only=True)
class UpdateCheckBegun:
    """A server begins a round; `server` is an id that is new at each of its starts."""

    round: int
    server: str
    at: datetime


@REGISTRY.event("UpdateCheckEnded")
@attrs.frozen(kw_only=True)
class UpdateCheckEnded:
    """The round has checked all repositories.

    `projects` counts the projects that were checked, `scheduled` the tasks that were queued, `failed` the refs that could not be
    looked up.
    """

    round: int
    projects: int
    scheduled: int
    failed: int
    at: datetime


ScheduleEvent = UpdateCheckBegun | UpdateCheckEnded


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Schedule:
    """The last round. `ended_at` is None until it ends; then the figures are its own."""

    round: int
    server: str
    begun_at: datetime
    ended_at: datetime | None = None
    projects: int = 0
    scheduled: int = 0
    failed: int = 0


def evolve(state: Schedule | None, event: ScheduleEvent) -> Schedule:
    """Return the state after an event."""
    if isinstance(event, UpdateCheckBegun):
        return Schedule(round=event.round, server=event.server, begun_at=event.at)
    assert state is not None, "a round begins with UpdateCheckBegun"
    return attrs.evolve(state, ended_at=event.at, projects=event.projects, scheduled=event.scheduled, failed=event.failed)


@attrs.frozen(kw_only=True)
class BeginUpdateCheck:
    """Begin a round if one is due, `every` after the begin of the last one."""

    server: str
    every: timedelta
    at: datetime


@attrs.frozen(kw_only=True)
class EndUpdateCheck:
    """End the round that this server began."""

    round: int
    server: str
    projects: int
    scheduled: int
    failed: int
    at: datetime


ScheduleCommand = BeginUpdateCheck | EndUpdateCheck


def due_at(state: Schedule | None, every: timedelta) -> datetime | None:
    """Return the time at which the next round may begin; None: at once."""
    if state is None:
        return None
    return state.begun_at + (every if state.ended_at is not None else max(every, ABANDONED))


def decide(command: ScheduleCommand, state: Schedule | None) -> Sequence[ScheduleEvent]:
    """Return the events of a command: none if no round is due, or the round was taken over."""
    if isinstance(command, BeginUpdateCheck):
        due = due_at(state, command.every)
        if due is not None and command.at < due:
            return []
        return [UpdateCheckBegun(round=state.round + 1 if state else 1, server=command.server, at=command.at)]
    if state is None or (state.round, state.server) != (command.round, command.server) or state.ended_at is not None:
        return []
    return [
        UpdateCheckEnded(
            round=command.round, projects=command.projects, scheduled=command.scheduled, failed=command.failed, at=command.at
        )
    ]


SCHEDULE: Decider[Schedule, ScheduleCommand, ScheduleEvent] = Decider(CATEGORY, decide, evolve, initial=None)
