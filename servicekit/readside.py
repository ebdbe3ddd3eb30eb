"""The read side of a process that serves: projector, event stream, commands that read their own writes, readiness, figures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from math import inf

import structlog
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog import Commit, Unavailable
from eventlog.admin.scrub import LogScrubber
from eventlog.broker.requests import RequestServer
from eventlog.broker.write_health import Room, WriteState
from eventlog.commands import Commands
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.transport.connection import Connection
from httpkit.ops.health import Check, Concern, Health, Unknown
from httpkit.ops.metrics import gauge, total
from httpkit.sse.hub import Hub
from projections.errors import AggregateParked, Behind, ProjectionError, ProjectorStopped, StoreDamaged
from projections.keys import CommandKeys, LogKeys
from projections.migrations import Migrations
from projections.model import ReadModel
from projections.projector.projector import OnApplied, Projector
from projections.projector.report import ReadModelReport, standing
from projections.projector.status import State
from projections.projector.writer import pauses
from projections.rebuild.operations import AdminHandler, subject_of
from projections.rebuild.recovery import damaged, make_again, open_sound
from projections.rebuild.upgrade import SchemaUpgrade
from projections.scrubs import KeptScrubs
from projections.store import KEYS, Store
from projections.stores.databases import copies_of, store_at
from servicekit.background import BackgroundWork, Start
from servicekit.broker_watch import BrokerWatch, raise_if_failing
from servicekit.errors import NotWritten
from servicekit.feed import CommitFrames, Feed
from servicekit.monitoring import addresses

_log = structlog.get_logger(__name__)

_HEARTBEATS_MISSED = 2.5
"""Seconds without a heartbeat of the process that applies events after which what is behind is not put down to load."""
_LOOK_AT_FINDINGS = 10.0
"""Seconds between two looks at the passes over the log that another process makes."""
READ_YOUR_WRITES = 5.0
"""Seconds for which the answer to a command waits for the read model."""


@asynccontextmanager
async def migrated(url: str, model: ReadModel) -> AsyncIterator[Store]:
    """Open the database of a read model with all migrations applied. A damaged one is set aside and rebuilt.

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

    `max_lag`: seconds of lag from which on it is not ready.
    `monitoring_url`: the monitoring port of nats-server, or several with commas between them. Without it, the health of the
    broker's store is known from the results of appends only.
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
        monitoring_url: str | None = None,
    ) -> None:
        self._connection = connection
        self._log = log
        self._store = store
        self._model = model
        self._max_lag = max_lag
        self._until = 0
        """The last sequence of the log at the start: the process is not ready before the tables have it."""
        self.broker = BrokerWatch(connection, model.stream, log.writes, addresses(monitoring_url))
        """Looks at the broker, for the health of writes."""
        self.scrubber = LogScrubber(
            MessageReader(connection, model.stream),
            model.registry,
            log.head,
            folds=model.folds,
            memory=KeptScrubs(store, model.stream),
        )
        """Reads the log over and over, while this process leads."""
        self._background = BackgroundWork()
        self.hub = Hub(frames.replay)
        self._feed = Feed(frames, self.hub)
        self.keys = LogKeys(log)
        """The idempotency keys of the log, which the tables may have lost."""
        self._listeners: list[OnApplied] = [self.keys.applied, self._feed.applied]
        self.projector = Projector(log, store, model, on_applied=self._applied)
        self._handover = SchemaUpgrade(store, copies_of(store), log, model)
        self.maintenance = AdminHandler(self.projector, store, copies_of(store), log, model)
        self._desk = RequestServer(connection, subject_of(model), self.maintenance.take)
        self.commands = Commands(
            log, keys=CommandKeys(self.projector, store, in_log=self.keys), check_writable=self.projector.check_running
        )

    def on_applied(self, listener: OnApplied) -> None:
        """Call `listener` with the commits of each transaction, once they are visible. Before `running`."""
        self._listeners.append(listener)

    def _applied(self, commits: Sequence[Commit]) -> None:
        commits = [commit for commit in commits if commit.lost is None]  # a tombstone changes nothing
        if commits:
            for listener in self._listeners:
                listener(commits)

    @asynccontextmanager
    async def running(self, beside: Mapping[str, Start] | None = None) -> AsyncIterator[None]:
        """Run projector and event stream during the block, and the work in `beside` while this process leads."""
        head = await self._log.head()
        self.hub.start(head.last)
        self.projector.show_after(head.last)
        self._until = head.last
        await self._know_position()
        rest = {"orders": self._desk.run, "scrubbing": self.scrubber.run, **(beside or {})}
        work: dict[str, Start] = {
            "event stream": self._feed.run,
            "broker's health": self.broker.run,
            "keys of the log": partial(self._read_keys, head.last),
            "findings": self._follow_scrubbing,
            **{name: partial(self._while_leading, run) for name, run in rest.items()},
        }
        # A projector that has stopped needs an operator; readiness shows it, and writes are refused.
        async with self._background.running(work, once={"projector": self._project}):
            yield

    async def _follow_scrubbing(self) -> None:
        """Show the passes of the process that leads, while this one does not."""
        while True:
            if not self.projector.lead.held:
                await self.scrubber.recall()
            await asyncio.sleep(_LOOK_AT_FINDINGS)

    async def _read_keys(self, until: int) -> None:
        for pause in pauses():
            try:
                await self.keys.read(until)
            except Unavailable as error:
                _log.info("the keys of the log wait", reason=str(error))
                await asyncio.sleep(pause)
            else:
                return

    async def _while_leading(self, run: Start) -> None:
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

    async def _know_position(self) -> None:
        """Have answers name the position from the first one on, unless another version has made the tables."""
        try:
            stored = await self._store.checkpoints()
            if all(stored[one.name].version == one.version for one in self._model.projections if one.name in stored):
                await self.projector.load_shown()
        except ProjectionError as error:  # the projector meets it too, and sees to it
            _log.debug("the position is not known yet", reason=str(error))

    async def _project(self) -> None:
        """Ensure that the tables are this program's, and run the projector.

        A database that is found to be damaged while it runs is set aside and rebuilt from the log.
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
        """Wait until the read model has the sequence that a command wrote, and return the sequence.

        The command took effect, even if the read model is late or stops at that moment. The answer is then sent without it, and
        a reader who must not be behind asks with `min_seq`. Later commands are refused before they are stored.
        """
        try:
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        except (Behind, ProjectorStopped) as reason:
            _log.warning("answer sent before the read model has it", sequence=sequence, reason=str(reason))
        return sequence

    async def wait_for(self, sequence: int) -> None:
        """Wait for `min_seq`. Raises NotWritten at once if the log does not have the sequence, and Behind if the tables are late.

        Raises AggregateParked at once if the commit is not in the tables because its aggregate is parked.
        """
        if sequence > self.projector.position:
            head = await self._log.head()
            if sequence > head.last:
                raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        await self._check_applied(sequence)

    async def _check_applied(self, sequence: int) -> None:
        waiting = [
            one for one in self.projector.parked.values() if one.projection != KEYS.name and one.sequence <= sequence <= one.last
        ]
        commit = await self._log.at(sequence) if waiting else None
        for one in waiting:
            if commit is None or commit.subject == one.subject:
                raise AggregateParked(
                    f"sequence {sequence} is stored and not in the tables: {one.subject} is parked by projection "
                    f"{one.projection!r} since sequence {one.sequence}: {one.error}. `projections parked` lists it, "
                    "`projections unpark` applies what waits"
                )

    async def wait_for_head(self) -> None:
        """Wait until the read model has all that is in the log now. Raises Behind, Unavailable."""
        head = await self._log.head()
        await self.projector.wait_for(head.last, READ_YOUR_WRITES)

    def checks(self) -> Mapping[str, Check]:
        """Return the checks that have to pass before the process is ready."""
        return {
            "broker": self._check_broker,
            "database": self._check_database,
            "read model": self._check_read_model,
            "writes": self._check_writes,
        }

    @cached_property
    def _migrations(self) -> Migrations:
        return Migrations(self._store, self._model)

    async def _check_broker(self) -> None:
        if not self._connection.connected:
            raise Unavailable("the broker is not connected")
        await self._log.head()

    async def _check_writes(self) -> Unknown | None:
        status = self.projector.status()
        if status.state is State.STOPPED:
            raise ProjectorStopped(f"the projector has stopped: {status.error}")
        if self.keys.reading is not None:
            raise Unavailable(self.keys.reading)
        writes = await self.broker.writes()
        raise_if_failing(writes)
        return Unknown(writes.reason) if writes.state is WriteState.UNKNOWN else None

    async def _check_database(self) -> None:
        await self._migrations.pending()  # a newer program may have changed the tables

    async def _check_read_model(self) -> None:
        if (reason := self._handover.reason()) is not None:
            raise ProjectorStopped(reason)
        status = self.projector.status()
        if status.state in {State.STOPPED, State.WAITING, State.STARTING}:
            raise ProjectorStopped(status.error or f"the projector is {status.state}")
        if status.position < self._until:
            raise ProjectorStopped(f"the tables have sequence {status.position} of {self._until} that the log had at the start")
        if status.lag_seconds is not None and status.lag_seconds > self._max_lag:
            raise ProjectorStopped(f"{status.lag_events} events behind the log, {status.lag_seconds:.0f} s")
        silent = None if self._store.turns is None else self._store.turns.silent
        if status.lag_events and silent is not None and silent > _HEARTBEATS_MISSED:
            raise ProjectorStopped(
                f"{status.lag_events} events behind the log: the process that applies them was not heard of for {silent:.0f} s"
            )

    def health(self) -> Health:
        """Return the probes: ready if all checks hold, with reads and writes apart, and a note of parked aggregates."""
        concerns = {"broker": Concern.WRITES, "read model": Concern.READS, "writes": Concern.WRITES}
        return Health(self.checks(), note=self.note, concerns=concerns)

    async def standing(self) -> ReadModelReport:
        """Return the state of the read model. Raises Unavailable, StoreUnavailable."""
        return await standing(self._store, copies_of(self._store), self._log, self._model)

    def note(self) -> str | None:
        """Return the problems that do not stop the service, or None without one."""
        aside = getattr(self._store, "set_aside_as", None)
        made = None if aside is None else f"database: it was damaged and is rebuilt from the log; the damaged one is {aside}"
        broker = [f"broker: {note}" for note in self.broker.notes()]
        lost = (
            f"read model: {self.keys.missing} idempotency keys were found in the log and not in the tables: `projections rebuild`"
        )
        notes = (made, self._damaged(), self._parked(), lost if self.keys.missing else None, self._background.note(), *broker)
        return "; ".join(note for note in notes if note is not None) or None

    def _damaged(self) -> str | None:
        found = self.scrubber.found
        if found is None or not found.count:
            return None
        return (
            f"log: {found.count} records of {self._model.stream} are damaged, the first: {found.found[0]}. Do not delete the "
            "tables, and do not restart nats-server, which may cut the log there: see docs/guides/operation.md, A damaged log"
        )

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
        yield gauge("projection_leading", "1 if this process applies the events.", self.projector.lead.held)
        yield gauge("projection_stopped", "1 if the projector has stopped.", status.state is State.STOPPED)
        parked = self.projector.parked.values()
        yield gauge("projection_parked", "Aggregates that are parked.", len(parked))
        text = "Commits that wait behind one that cannot be applied."
        yield gauge("projection_parked_commits", text, sum(one.waiting for one in parked))
        yield total("projection_commits_applied", "Commits applied to the read model.", status.applied)
        connection, log = self._connection, self._log
        writes = log.writes.now()
        known = None if writes.state is WriteState.UNKNOWN else not writes.fail
        yield gauge("writes_ready", "1 if appends are taken, 0 if they fail, NaN if it is not known.", known)
        yield _states(writes.state)
        yield _used(log.writes.rooms())
        yield from _scrubbed(self.scrubber)
        yield from self._background.collect()
        yield gauge("broker_connected", "1 where the broker answers.", connection.connected)
        yield total(
            "broker_reconnects", "Connections that were replaced.", connection.counters.reconnects + connection.counters.replaced
        )
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


def _scrubbed(scrubber: LogScrubber) -> Iterator[Metric]:
    current, complete, found = scrubber.current, scrubber.complete, scrubber.found
    text = "Sequence that the pass over the log has reached which runs, or ran last."
    yield gauge("log_scrub_position", text, None if current is None else current.position)
    text = "When the last complete pass over the log ended, in seconds since 1970."
    ended = None if complete is None or complete.ended is None else complete.ended.timestamp()
    yield gauge("log_scrub_completed_timestamp_seconds", text, ended)
    text = "Records of the log that are damaged, as far as a pass of this process has found."
    yield gauge("log_damaged_records", text, None if found is None else found.count)


def _states(now: WriteState) -> Metric:
    text = "1 for the state of appends now, 0 for the others."
    states = GaugeMetricFamily("writes_state", text, labels=["state"])
    for state in WriteState:
        states.add_metric([state.value], float(state is now))
    return states


def _used(rooms: Sequence[Room]) -> Metric:
    text = "Share of each limit of the broker that is used, from 0 to 1; appends fail at 1."
    used = GaugeMetricFamily("broker_limit_used_ratio", text, labels=["limit"])
    for room in rooms:
        used.add_metric([room.kind], room.share)
    return used
