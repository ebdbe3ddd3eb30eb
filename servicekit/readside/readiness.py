"""Whether a read side is ready, and a note of the problems that do not stop it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property

import attrs

from eventlog import Commit, Unavailable
from eventlog.admin.scrub import LogScrubber
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.jetstream.write_health import WriteState
from httpkit.ops.health import Check, Unknown
from projections.errors import AggregateParked, ProjectorStopped
from projections.keys import LogKeys
from projections.migrations import Migrations
from projections.model import ReadModel
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.rebuild.upgrade import SchemaUpgrade
from projections.store import KEYS, Parked, Store
from servicekit.broker.broker_watch import BrokerWatch, raise_if_failing
from servicekit.serving.background import BackgroundWork


async def check_applied(sequence: int, parked: Collection[Parked], commit_at: Callable[[int], Awaitable[Commit | None]]) -> None:
    """See that a commit which the tables have passed is in them. Raises AggregateParked if its aggregate is parked.

    `parked` are the parked aggregates of the tables. `commit_at` gives the commit of a sequence, or None if it is not known: then
    the commit may be of any aggregate.
    """
    waiting = [one for one in parked if one.projection != KEYS.name and one.sequence <= sequence <= one.last]
    commit = await commit_at(sequence) if waiting else None
    for one in waiting:
        if commit is None or commit.subject == one.subject:
            raise AggregateParked(
                f"sequence {sequence} is stored and not in the tables: {one.subject} is parked by projection "
                f"{one.projection!r} since sequence {one.sequence}: {one.error}. `projections parked` lists it, "
                "`projections unpark` applies what waits"
            )


def note_of(parked: Collection[Parked]) -> str | None:
    """Return what the health of a service tells about parked aggregates, or None without one."""
    if not parked:
        return None
    first = min(parked, key=lambda one: one.sequence)
    return (
        f"read model: {len(parked)} parked, {sum(one.waiting for one in parked)} commits wait; the first: {first.subject} of "
        f"projection {first.projection!r} at sequence {first.sequence}: {first.error}"
    )


_HEARTBEATS_MISSED = 2.5
"""Seconds without a heartbeat of the process that applies events after which what is behind is not put down to load."""


@attrs.define(kw_only=True)
class Readiness:
    """The checks of a read side, and the problems that do not stop it.

    `max_lag`: seconds of lag from which on it is not ready. `until`: the sequence that the tables need at least.
    """

    connection: Connection
    log: JetStreamLog
    store: Store
    model: ReadModel
    projector: Projector
    keys: LogKeys
    broker: BrokerWatch
    handover: SchemaUpgrade
    scrubber: LogScrubber
    background: BackgroundWork
    max_lag: float
    until: int = 0
    of_parts: list[Callable[[], str | None]] = attrs.field(factory=list)
    """Notes of the parts that a service adds."""

    def checks(self) -> Mapping[str, Check]:
        """Return the checks that have to pass before the process is ready."""
        return {
            "broker": self._check_broker,
            "database": self._check_database,
            "read model": self._check_read_model,
            "writes": self._check_writes,
        }

    def note(self) -> str | None:
        """Return the problems that do not stop the service, or None without one."""
        aside = getattr(self.store, "set_aside_as", None)
        made = None if aside is None else f"database: it was damaged and is rebuilt from the log; the damaged one is {aside}"
        broker = [f"broker: {note}" for note in self.broker.notes()]
        lost = (
            f"read model: {self.keys.missing} idempotency keys were found in the log and not in the tables: `projections rebuild`"
        )
        notes = (
            made,
            self._damaged(),
            note_of(self.projector.parked.values()),
            lost if self.keys.missing else None,
            self.background.note(),
            *broker,
            *(part() for part in self.of_parts),
        )
        return "; ".join(note for note in notes if note is not None) or None

    @cached_property
    def _migrations(self) -> Migrations:
        return Migrations(self.store, self.model)

    async def _check_broker(self) -> None:
        if not self.connection.connected:
            raise Unavailable("the broker is not connected")
        await self.broker.check()

    async def _check_writes(self) -> Unknown | None:
        status = self.projector.status()
        if status.state is ProjectorState.STOPPED:
            raise ProjectorStopped(f"the projector has stopped: {status.error}")
        if self.keys.reading is not None:
            raise Unavailable(self.keys.reading)
        writes = await self.broker.writes()
        raise_if_failing(writes)
        if status.refused is not None:
            raise Unavailable(
                f"commands with an idempotency key are refused, because the tables lack the last keys: {status.refused}"
            )
        await self.store.check_readable([KEYS.name])
        return Unknown(writes.reason) if writes.state is WriteState.UNKNOWN else None

    async def _check_database(self) -> None:
        await self._migrations.pending()  # a newer program may have changed the tables
        await self.store.check_readable([table.name for projection in self.model.projections for table in projection.tables])

    async def _check_read_model(self) -> None:
        if (reason := self.handover.reason()) is not None:
            raise ProjectorStopped(reason)
        status = self.projector.status()
        if status.state in {ProjectorState.STOPPED, ProjectorState.WAITING, ProjectorState.STARTING}:
            raise ProjectorStopped(status.error or f"the projector is {status.state}")
        if status.position < self.until:
            raise ProjectorStopped(f"the tables have sequence {status.position} of {self.until} that the log had at the start")
        if status.lag_seconds is not None and status.lag_seconds > self.max_lag:
            raise ProjectorStopped(f"{status.lag_events} events behind the log, {status.lag_seconds:.0f} s")
        silent = None if self.store.election is None else self.store.election.silent
        if status.lag_events and silent is not None and silent > _HEARTBEATS_MISSED:
            raise ProjectorStopped(
                f"{status.lag_events} events behind the log: the process that applies them was not heard of for {silent:.0f} s"
            )

    def _damaged(self) -> str | None:
        found = self.scrubber.found
        if found is None or not found.count:
            return None
        return (
            f"log: {found.count} records of {self.model.stream} are damaged, the first: {found.found[0]}. Do not delete the "
            "tables, and do not restart nats-server, which may cut the log there: see docs/guides/operation.md, A damaged log"
        )
