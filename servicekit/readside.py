"""The read side of a process that serves: projector, event stream, commands that read their own writes, readiness, figures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from http import HTTPStatus
from math import inf
from typing import Any

import structlog
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog import Commit, Unavailable
from eventlog.broker.requests import RequestServer
from eventlog.commands import Commands
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from httpkit.errors import HttpkitError
from httpkit.ops.health import Check, Health
from httpkit.ops.metrics import gauge, total
from httpkit.sse.hub import Hub
from projections.errors import Behind, ProjectorStopped, StoreDamaged
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.model import ReadModel
from projections.projector.projector import OnApplied, Projector
from projections.projector.report import ReadModelReport, standing
from projections.projector.status import State
from projections.rebuild.operations import AdminHandler, subject_of
from projections.rebuild.recovery import damaged, make_again, open_sound
from projections.rebuild.upgrade import SchemaUpgrade
from projections.store import Store
from projections.stores.databases import copies_of, store_at
from servicekit.feed import CommitFrames, Feed

_log = structlog.get_logger(__name__)

READ_YOUR_WRITES = 5.0
"""Seconds for which the answer to a command waits for the read model."""


class NotWritten(HttpkitError):
    """A sequence is asked for that the log does not have."""

    status = HTTPStatus.CONFLICT


@asynccontextmanager
async def migrated(url: str, model: ReadModel) -> AsyncIterator[Store]:
    """The database of a read model, open and with all migrations; a damaged one is set aside, and made again.

    Raises StoreUnavailable, StoreForeign, MigrationError.
    """
    store = store_at(url)
    try:
        await open_sound(store, model)
        yield store
    finally:
        await store.close()


class ReadSide(Collector):
    """Wired, and run by `running`; its figures are for `/metrics`.

    `max_lag`: seconds of lag from which on it is not ready. `on_applied`: who else is told what has become visible.
    """

    def __init__(
        self,
        *,
        connection: Connection,
        log: JetStreamLog,
        store: Store,
        model: ReadModel,
        frames: CommitFrames,
        max_lag: float,
        on_applied: Sequence[OnApplied] = (),
    ) -> None:
        self._connection = connection
        self._log = log
        self._store = store
        self._model = model
        self._max_lag = max_lag
        self.hub = Hub(frames.replay)
        self._feed = Feed(frames, self.hub)
        self._told = (self._feed.applied, *on_applied)
        self.projector = Projector(log, store, model, on_applied=self._applied)
        self._handover = SchemaUpgrade(store, copies_of(store), log, model)
        self.maintenance = AdminHandler(self.projector, store, copies_of(store), log, model)
        self._desk = RequestServer(connection, subject_of(model), self.maintenance.take)
        self.commands = Commands(log, keys=CommandKeys(self.projector, store))

    def _applied(self, commits: Sequence[Commit]) -> None:
        for tell in self._told:
            tell(commits)

    @asynccontextmanager
    async def running(self, beside: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] | None = None) -> AsyncIterator[None]:
        """Run projector and event stream for as long as the block lasts, and beside them, while this process leads, the rest."""
        head = await self._log.head()
        self.hub.start(head.last)
        self.projector.show_after(head.last)
        rest = {"orders": self._desk.run, **(beside or {})}
        led = {name: self._while_leading(run) for name, run in rest.items()}
        work = {"projector": self._project(), "event stream": self._feed.run(), **led}
        tasks = [asyncio.create_task(_kept(name, part), name=name) for name, part in work.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _while_leading(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        lead = self.projector.lead
        while True:
            await lead.gained()
            working, lost = asyncio.create_task(run()), asyncio.create_task(lead.lost())
            try:
                await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (working, lost):
                    task.cancel()
                await asyncio.wait({working, lost})
            if not working.cancelled():
                working.result()

    async def _project(self) -> None:
        """See that the tables are this program's, and run the projector.

        A database that proves to be damaged meanwhile is set aside, and made again from the log.
        """
        try:
            await self._handover.run(self.projector)
        except StoreDamaged as error:
            await make_again(self._store, self._model, error)
            await self._handover.run(self.projector)
        while True:
            tasks = running, looking = asyncio.create_task(self.projector.run()), asyncio.create_task(damaged(self._store))
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            if looking.cancelled():
                stopped = running.exception()
                if stopped is None or not isinstance(stopped.__cause__, StoreDamaged):
                    return await running
                await make_again(self._store, self._model, stopped.__cause__)
            else:
                await make_again(self._store, self._model, looking.result())

    async def wait_visible(self, sequence: int) -> int:
        """Wait until the read model has what a command wrote, and give that sequence.

        The command took effect, whether or not the read model keeps up: then the answer is sent all the same, and a reader
        who must not be behind asks with `min_seq`.
        """
        try:
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        except Behind as behind:
            _log.warning("answer sent before the read model has it", sequence=sequence, reason=str(behind))
        return sequence

    async def wait_for(self, sequence: int) -> None:
        """For `min_seq`. Raises NotWritten at once for what the log does not have, Behind where the tables are late."""
        if sequence > self.projector.position:
            head = await self._log.head()
            if sequence > head.last:
                raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)

    async def wait_for_head(self) -> None:
        """Wait until the read model has all that is in the log now. Raises Behind, Unavailable."""
        head = await self._log.head()
        await self.projector.wait_for(head.last, READ_YOUR_WRITES)

    def checks(self) -> Mapping[str, Check]:
        """What has to hold for the process to be ready."""
        return {"broker": self._check_broker, "database": self._check_database, "read model": self._check_read_model}

    @cached_property
    def _migrations(self) -> Migrations:
        return Migrations(self._store, self._model)

    async def _check_broker(self) -> None:
        if not self._connection.connected:
            raise Unavailable("the broker is not connected")
        await self._log.head()

    async def _check_database(self) -> None:
        await self._migrations.pending()  # a newer program may have changed the tables

    async def _check_read_model(self) -> None:
        if (reason := self._handover.reason()) is not None:
            raise ProjectorStopped(reason)
        status = self.projector.status()
        if status.state in {State.STOPPED, State.WAITING, State.STARTING}:
            raise ProjectorStopped(status.error or f"the projector is {status.state}")
        if status.lag_seconds is not None and status.lag_seconds > self._max_lag:
            raise ProjectorStopped(f"{status.lag_events} events behind the log, {status.lag_seconds:.0f} s")

    def health(self) -> Health:
        """The probes: ready where all checks hold; what is parked is told beside."""
        return Health(self.checks(), note=self.note)

    async def standing(self) -> ReadModelReport:
        """How the read model stands. Raises Unavailable, StoreUnavailable."""
        return await standing(self._store, copies_of(self._store), self._log, self._model)

    def note(self) -> str | None:
        """What is wrong though the service goes on, None where nothing is."""
        aside = getattr(self._store, "set_aside_as", None)
        made = None if aside is None else f"database: it was damaged and is made again from the log; the damaged one is {aside}"
        return "; ".join(note for note in (made, self._parked()) if note is not None) or None

    def _parked(self) -> str | None:
        parked = self.projector.parked.values()
        if not parked:
            return None
        first = min(parked, key=lambda one: one.sequence)
        return (
            f"read model: {len(parked)} parked, {sum(one.waiting for one in parked)} commits wait; the first: {first.subject} of "
            f"projection {first.projection!r} at sequence {first.sequence}: {first.error}"
        )

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        status = self.projector.status()
        yield gauge("projection_position", "Sequence of the log that the read model has reached.", status.position)
        yield gauge("projection_lag_events", "Events of the log that the read model has not applied.", status.lag_events)
        yield gauge("projection_lag_seconds", "Age of the oldest event that is not applied.", status.lag_seconds)
        yield gauge("projection_rate", "Events applied per second, over the last five seconds.", status.rate)
        yield gauge("projection_leading", "1 where it is this process that applies.", self.projector.lead.held)
        yield gauge("projection_stopped", "1 where the projector has stopped.", status.state is State.STOPPED)
        parked = self.projector.parked.values()
        yield gauge("projection_parked", "Aggregates that are parked.", len(parked))
        text = "Commits that wait behind one that cannot be applied."
        yield gauge("projection_parked_commits", text, sum(one.waiting for one in parked))
        yield total("projection_commits_applied", "Commits applied to the read model.", status.applied)
        connection, log = self._connection, self._log
        yield gauge("broker_connected", "1 where the broker answers.", connection.connected)
        yield total("broker_reconnects", "Connections made anew.", connection.counters.reconnects + connection.counters.replaced)
        yield HistogramMetricFamily(
            "append_duration_seconds",
            "Time until the broker had stored what was appended.",
            buckets=[("+Inf" if bound == inf else str(bound), float(count)) for bound, count in log.timings.cumulative()],
            sum_value=log.timings.total,
        )
        yield total("appends_failed", "Appends that were refused, or whose outcome was not known in time.", log.failed)
        yield total("appends_shared", "Appends that were stored in a batch shared with others.", log.group.shared)
        text = "Appends that lost against another writer and were decided again."
        yield total("command_conflicts", text, self.commands.conflicts)


async def _kept(name: str, work: Coroutine[Any, Any, None]) -> None:
    """A part that fails is logged; the others go on, and readiness tells."""
    try:
        await work
    except Exception:  # noqa: BLE001 - whatever ended it, it is said
        _log.exception("part ended", part=name)
