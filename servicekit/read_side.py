"""The read side of a process that serves: projector, event stream, commands that read their own writes, readiness, figures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from http import HTTPStatus
from math import inf
from typing import Any

import attrs
import structlog
from prometheus_client.core import HistogramMetricFamily, Metric

from eventlog import (
    AggregateId,
    Commit,
    Decider,
    EventLog,
    EventLogError,
    LogDamaged,
    Position,
    SequenceGap,
    Unavailable,
    UndecodableCommit,
)
from eventlog.admin.declarations import Stream
from eventlog.admin.scrub import LogScrubber
from eventlog.commands import Commands
from eventlog.commit import RecordedEvent
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.fence import WriteState
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.requests import RequestServer
from eventlog.support.timers import until_one_ends, until_tick
from httpkit.edge import READ_YOUR_WRITES
from httpkit.errors import HttpkitError
from httpkit.monitoring import Concern, Unknown, gauge, gauges, total
from httpkit.sse.hub import Hub
from httpkit.sse.stream import LAST_INDEX, Frame
from projections.errors import AggregateParked, Behind, ProjectionError, ProjectorStopped, StoreDamaged
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.model import COMMAND_KEYS, ReadModel
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.queries import KeptScrubs, SnapshotQueries
from projections.rebuild.operations import OperationHandler, subject_of
from projections.rebuild.rebuild import SchemaUpgrade, damaged, make_again_patiently, open_sound
from projections.rebuild.report import ReadModelReport, standing
from projections.store import Parked, Store
from projections.stores.databases import copies_of, store_at
from servicekit.broker_watch import BrokerWatch, monitoring_addresses, raise_if_failing
from servicekit.parts import Part, ProcessParts

_log = structlog.get_logger(__name__)

MOST_WAITING = 20_000
"""Commits that may wait to be shown; beyond that (an import, a read model that catches up) clients read them from the log."""
AT_A_TIME = 500
BACK_OFF = 1.0


@attrs.frozen(kw_only=True)
class EventChange:
    """One event of a commit, with the state of its aggregate before and after it.

    `before` is None if the aggregate did not exist, or if the commit does not need it (see `CommitFrames`).
    """

    aggregate: AggregateId
    event: RecordedEvent
    before: Any
    after: Any
    sequence: int


@attrs.frozen(eq=False)
class CommitFrames:
    """Makes frames of commits: `show` gives the frames of each event, in order.

    A client resumes after the place of a frame. So a frame that is not after the previous one of its commit gets the next place.

    `deciders` by category: commits of other categories have no frames. `show` gets the state before each event of a commit with
    several events, and of a commit that `needs_previous_state`. This costs a read of the log.
    """

    _log: EventLog
    _deciders: Mapping[str, Decider[Any, Any, Any]]
    _show: Callable[[EventChange], Iterable[Frame]]
    _needs_previous_state: Callable[[Commit], bool] = attrs.field(default=lambda _: False, kw_only=True)

    async def of(self, commits: Sequence[Commit]) -> list[Frame]:
        """The frames of these commits, in order.

        A tombstone has none, and neither has a commit that cannot be read, whose aggregate the projector parks. Raises
        SequenceGap if the log cannot read the record before a commit, whose state is needed, and Unavailable.
        """
        frames: list[Frame] = []
        for commit in commits:
            if commit.lost is not None or commit.category not in self._deciders:
                continue
            try:
                found = list(_in_places(frame for change in await self._changes(commit) for frame in self._show(change)))
            except UndecodableCommit as error:
                _log.warning("a commit cannot be shown", sequence=commit.sequence, reason=str(error))
            else:
                frames += found
        return frames

    async def replay(self, after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
        """The frames after a position, up to sequence `until`, from the log. Raises Unavailable, LogDamaged."""
        # The commit of the position is included if it may hold later events.
        first = after.sequence if after.index == LAST_INDEX else max(0, after.sequence - 1)
        async for commits in self._log.follow(after=first, until=until):
            frames = [frame for frame in await self.of(commits) if frame.position > after]
            if frames:
                yield frames

    async def _changes(self, commit: Commit) -> Sequence[EventChange]:
        events, state = await self._log.decrypt(commit), commit.state
        event_change = partial(EventChange, aggregate=commit.aggregate, sequence=commit.sequence)
        if len(events) == 1 and not self._needs_previous_state(commit):
            return (event_change(event=events[0], before=None, after=state),)
        decider = self._deciders[commit.category]
        before = await self._state_at(commit.guard) if commit.guard else None
        changes = []
        for event in events:
            after = decider.fold((event.data,), before)
            changes.append(event_change(event=event, before=before, after=after))
            before = after
        return changes

    async def _state_at(self, sequence: int) -> Any:
        commit = await self._log.at(sequence)
        if commit is not None:
            return commit.state
        if (await self._log.head()).last < sequence:  # a leader that was elected just now may not know its own end yet
            raise Unavailable(f"sequence {sequence} cannot be read now")
        raise SequenceGap(sequence, None)


def _in_places(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames of one commit, each at a later place than the one before."""
    last: Position | None = None
    for frame in frames:
        placed = frame
        if last is not None and frame.position <= last:
            placed = attrs.evolve(frame, position=Position(last.sequence, last.index + 1))
        last = placed.position
        yield placed


class Feed:
    """Publishes frames of applied commits while `run` runs."""

    def __init__(self, frames: CommitFrames, hub: Hub) -> None:
        self._frames = frames
        self._hub = hub
        self._waiting: deque[Commit] = deque()
        self._news = asyncio.Event()
        self._last = 0

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now. Called by the projector, after each of its transactions."""
        self._last = commits[-1].sequence
        if not self._waiting and self._hub.has_no_clients:
            self._hub.skip_to(self._last)
            return
        self._waiting.extend(commits)
        self._news.set()

    async def run(self) -> None:
        """Publish until cancelled. `hub` has been started."""
        try:
            await self._run()
        except Exception:
            self._skip()
            raise

    def _skip(self) -> None:
        """Clients read from the log what was not published."""
        self._waiting.clear()
        self._hub.skip_to(self._last)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                if len(self._waiting) > MOST_WAITING:
                    _log.info("event stream continues from the log", skipped=len(self._waiting), sequence=self._last)
                    self._skip()
                elif self._hub.has_no_clients:  # no frames are made: a later client gets them from the log
                    self._skip()
                some = [self._waiting.popleft() for _ in range(min(AT_A_TIME, len(self._waiting)))]
                await self._publish([commit for commit in some if commit.sequence > self._hub.sequence])
                await asyncio.sleep(0)

    async def _publish(self, commits: Sequence[Commit]) -> None:
        while commits:
            try:
                self._hub.publish(await self._frames.of(commits), commits[-1].sequence)
            except LogDamaged as error:
                # Waiting would hold up the events of all aggregates. Clients come back, and get a reset.
                _log.error("events cannot be shown: clients load their state once more", reason=str(error))
                self._hub.skip_to(commits[-1].sequence)
                return
            except EventLogError as error:
                # Earlier states and encrypted data need the log. The frames wait for it, so that no event is left out.
                _log.warning("event stream waits", error=str(error))
                await asyncio.sleep(BACK_OFF)
            else:
                return


class NotWritten(HttpkitError):
    """A sequence is asked for that the log does not have."""

    status = HTTPStatus.CONFLICT


AHEAD = 100
"""Commits by which answered commands are ahead of the tables at most. A later command waits, and so no read waits for long."""


_LOOK_AT_FINDINGS = 10.0
"""Seconds between two looks at the passes over the log that another process makes."""
_HEARTBEATS_MISSED = 2.5
"""Seconds without a heartbeat after which a lag counts as a failure of the leader, not as load."""


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


async def check_applied(sequence: int, parked: Collection[Parked], commit_at: Callable[[int], Awaitable[Commit | None]]) -> None:
    """Check that a commit which the tables have passed is in them. Raises AggregateParked if its aggregate is parked.

    `parked` are the parked aggregates of the tables. `commit_at` gives the commit of a sequence, or None if it is not known: then
    the commit may be of any aggregate.
    """
    waiting = [entry for entry in parked if entry.sequence <= sequence <= entry.last]
    commit = await commit_at(sequence) if waiting else None
    for entry in waiting:
        if commit is None or commit.subject == entry.subject:
            raise AggregateParked(
                f"sequence {sequence} is stored and not in the tables: {entry.subject} is parked by projection "
                f"{entry.projection!r} since sequence {entry.sequence}: {entry.error}. `projections parked` lists it, "
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


class ReadSide:
    """The parts of a process that fills a read model, wired; they work while `running` runs.

    `max_lag`: seconds of lag from which on it is not ready.
    `monitoring_url`: the monitoring port of nats-server, or several with commas between. Without it, the health of the
    broker's store is known from the results of appends only. `declared`: see `servicekit.broker_watch`.
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
        declared: Sequence[Stream] = (),
    ) -> None:
        self._connection = connection
        self._log = log
        self._store = store
        self._model = model
        self._max_lag = max_lag
        self._until = 0
        """The end of the log at the start, which the tables need at least."""
        self.broker = BrokerWatch(connection, model.stream, log.writes, monitoring_addresses(monitoring_url), declared)
        """Looks at the broker, for the health of writes."""
        reader, memory = MessageReader(connection, model.stream), KeptScrubs(store, model.stream)
        self.scrubber = LogScrubber(reader, model.registry, log.head, folds=model.folds, memory=memory)
        """Reads the log over and over, while this process leads."""
        self.hub = Hub(frames.replay)
        self.parts = ProcessParts()
        self.projector = Projector(log, store, model, on_applied=self.parts.applied)
        self._acknowledged = self._missed = 0
        """The sequence that reads have to include, and the last one that a read waited for in vain."""
        self.snapshots = SnapshotQueries(store, model)
        """The tables as the handler of a read sees them: at one moment, whose sequence its answer names."""
        self.moment = self.snapshots.moment
        self._upgrade = SchemaUpgrade(store, copies_of(store), log, model)
        self.operations = OperationHandler(self.projector, store, copies_of(store), log, model)
        self.commands = Commands(
            log,
            keys=CommandKeys(self.projector, store),
            check_writable=self.projector.check_running,
            now=self.broker.clock.now,
        )
        feed, requests = Feed(frames, self.hub), RequestServer(connection, subject_of(model), self.operations.take)
        self.parts.add(
            Part("event stream", feed.run, applied=feed.applied, collect=self.hub.collect),
            Part("database", check=self._check_database, note=self._replaced_database),
            Part(
                "broker",
                self.broker.run,
                check=self._check_broker,
                concern=Concern.WRITES,
                note=self._broker_notes,
                collect=self._broker_figures,
            ),
            Part(
                "read model",
                self._project,
                check=self._check_read_model,
                concern=Concern.READS,
                note=self._parked,
                collect=self._projection_figures,
            ),
            Part("writes", check=self._check_writes, concern=Concern.WRITES, collect=self._write_figures),
            Part("findings", self._follow_scrubbing, note=self._damages, collect=self._scrub_figures),
        )
        self.add_leading(Part("operations", requests.run), Part("scrubbing", self.scrubber.run))

    def add_leading(self, *parts: Part) -> None:
        """Add parts that run while this process leads. Call it before `running`."""
        lead = self.projector.lead
        self.parts.add(*(part if part.run is None else attrs.evolve(part, run=partial(lead.run, part.run)) for part in parts))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the parts during the block."""
        head = await self._log.head()
        self.hub.start(head.last)
        self.projector.show_after(head.last)
        self._until = head.last
        self._acknowledged = head.last  # this process may have acknowledged it before it was restarted
        await self._know_position()
        await self.broker.look()  # the first event has the right time
        async with self.parts.running():
            yield

    async def _follow_scrubbing(self) -> None:
        """Show the passes of the process that leads, while this one does not."""
        while True:
            if not self.projector.lead.held:
                await self.scrubber.recall()
            await asyncio.sleep(until_tick(_LOOK_AT_FINDINGS))

    async def _know_position(self) -> None:
        """Load the position, so that the first answer names it, unless another version made the tables."""
        try:
            stored = await self._store.checkpoints()
            if all(stored[one.name].version == one.version for one in self._model.projections if one.name in stored):
                await self.projector.load_shown()
        except ProjectionError as error:  # the projector meets it too, and sees to it
            _log.debug("the position is not known yet", reason=str(error))

    async def _project(self) -> None:
        """Run the projector once. If it stops, it needs an operator: readiness shows it, and writes are refused."""
        try:
            await self._project_sound_tables()
        except Exception as error:  # noqa: BLE001 - whatever ended it, it is logged, and readiness names it
            _log.error("the projector ended", exc_info=error)

    async def _project_sound_tables(self) -> None:
        """Ensure that the tables are this program's, and run the projector.

        A database that is found to be damaged while it runs is set aside and rebuilt from the log.
        """
        try:
            await self._upgrade.run(self.projector)
        except StoreDamaged as error:
            await self._make_again(error)
            await self._upgrade.run(self.projector)
        while True:
            running, looking = await until_one_ends(self.projector.run(), damaged(self._store))
            if looking.cancelled():
                stopped = running.exception()
                if stopped is None or not isinstance(stopped.__cause__, StoreDamaged):
                    running.result()
                    return
                await self._make_again(stopped.__cause__)
            else:
                await self._make_again(looking.result())

    async def _make_again(self, error: StoreDamaged) -> None:
        """Replace a damaged database by a new one, to be filled from the log."""
        self.projector.show_nothing()
        await make_again_patiently(self._store, self._model, error)

    async def wait_for(self, sequence: int, seconds: float) -> None:
        """Return when the tables have a sequence. Raises Behind after that time.

        Raises at once NotWritten if the log does not have it, and AggregateParked if the commit is not in the tables because its
        aggregate is parked.
        """
        if sequence > self.projector.position:
            head = await self._log.head()
            if sequence > head.last:
                raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")
            await self.projector.wait_for(sequence, seconds)
        await check_applied(sequence, self.projector.parked.values(), self._log.at)

    async def catch_up(self) -> None:
        """Wait until the read model has all that is in the log now. Raises Behind, Unavailable."""
        head = await self._log.head()
        await self.projector.wait_for(head.last, READ_YOUR_WRITES)

    async def acknowledge(self, sequence: int, *, immediate: bool) -> None:
        """Wait until reads show what a command wrote. The answer to an `immediate` one follows its append: later reads wait.

        It waits too if other processes can share the tables, since their reads have no note of it, and while the tables are more
        than `AHEAD` commits behind. The command took effect, even if the tables are late or stop at that moment: the answer is
        then sent without them, and a reader that must not be behind asks with `min_seq`. Later commands are refused before they
        are stored.
        """
        if immediate and self._store.election is None:
            self._acknowledged = max(self._acknowledged, sequence)
            sequence -= AHEAD
        await self._has_in_time(sequence)

    async def include_acknowledged(self) -> None:
        """Wait until the tables have each command that this process has answered.

        If a read waited in vain, the next ones do not wait until the tables have reached the sequence of that time. Their answers
        name the older position that the tables have.
        """
        owed = self._acknowledged
        if self._missed <= self.projector.position < owed and not await self._has_in_time(owed):
            self._missed = owed

    async def _has_in_time(self, sequence: int) -> bool:
        try:
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        except (Behind, ProjectorStopped) as reason:
            _log.warning("an answer is sent before the tables have what was acknowledged", sequence=sequence, reason=str(reason))
            return False
        return True

    def state(self) -> object:
        """Return the state of the tables, equal while no row changes. None: not known, or less than was acknowledged."""
        return None if self.projector.position < self._acknowledged else self._store.state()

    def trouble(self) -> str:
        """Return the reason why commands take long: appends fail, or the tables take no change. An empty text: not known."""
        writes = self._log.writes.now()
        return (writes.reason if writes.fail else self.projector.status().refused) or ""

    async def standing(self) -> ReadModelReport:
        """Return the state of the read model. Raises Unavailable, StoreUnavailable."""
        return await standing(self._store, copies_of(self._store), self._log, self._model)

    async def _check_broker(self) -> None:
        if not self._connection.connected:
            raise Unavailable("the broker is not connected")
        await self.broker.check()

    async def _check_writes(self) -> Unknown | None:
        status = self.projector.status()
        if status.state is ProjectorState.STOPPED:
            raise ProjectorStopped(f"the projector has stopped: {status.error}")
        writes = await self.broker.writes()
        raise_if_failing(writes)
        if status.refused is not None:
            raise Unavailable(
                f"commands with an idempotency key are refused, because the tables lack the last keys: {status.refused}"
            )
        await self._store.check_readable([COMMAND_KEYS.name])
        return Unknown(writes.reason) if writes.state is WriteState.UNKNOWN else None

    @cached_property
    def _migrations(self) -> Migrations:
        return Migrations(self._store, self._model)

    async def _check_database(self) -> None:
        await self._migrations.pending()  # a newer program may have changed the tables
        await self._store.check_readable([table.name for projection in self._model.projections for table in projection.tables])

    async def _check_read_model(self) -> None:
        if (reason := self._upgrade.reason()) is not None:
            raise ProjectorStopped(reason)
        status = self.projector.status()
        if status.state in {ProjectorState.STOPPED, ProjectorState.WAITING, ProjectorState.STARTING}:
            raise ProjectorStopped(status.error or f"the projector is {status.state}")
        if status.position < self._until:
            raise ProjectorStopped(f"the tables have sequence {status.position} of {self._until} that the log had at the start")
        if status.lag_seconds is not None and status.lag_seconds > self._max_lag:
            raise ProjectorStopped(f"{status.lag_events} events behind the log, {status.lag_seconds:.0f} s")
        silent = None if self._store.election is None else self._store.election.silent
        if status.lag_events and silent is not None and silent > _HEARTBEATS_MISSED:
            raise ProjectorStopped(
                f"{status.lag_events} events behind the log: the process that applies them was not heard of for {silent:.0f} s"
            )

    def _replaced_database(self) -> str | None:
        aside = getattr(self._store, "set_aside_as", None)
        return None if aside is None else f"database: it was damaged and is rebuilt from the log; the damaged one is {aside}"

    def _damages(self) -> str | None:
        damages = self.scrubber.found
        if damages is None or not damages.count:
            return None
        return (
            f"log: {damages.count} records of {self._model.stream} are damaged, the first: {damages.found[0]}. Do not delete the "
            "tables, and do not restart nats-server, which may cut the log there: see docs/guides/operation.md, A damaged log"
        )

    def _parked(self) -> str | None:
        return note_of(self.projector.parked.values())

    def _broker_notes(self) -> str | None:
        return "; ".join(f"broker: {note}" for note in self.broker.notes()) or None

    def _projection_figures(self) -> Iterator[Metric]:
        status, parked = self.projector.status(), self.projector.parked.values()
        yield gauge("projection_position", "Sequence of the log that the read model has reached.", status.position)
        yield gauge("projection_lag_events", "Events of the log that the read model has not applied.", status.lag_events)
        yield gauge("projection_lag_seconds", "Age of the oldest event that is not applied.", status.lag_seconds)
        yield gauge("projection_rate", "Events applied per second, over the last five seconds.", status.rate)
        yield gauge("projection_leading", "1 if this process applies the events.", self.projector.lead.held)
        yield gauge("projection_stopped", "1 if the projector has stopped.", status.state is ProjectorState.STOPPED)
        yield gauge("projection_parked", "Aggregates that are parked.", len(parked))
        text = "Commits that wait behind one that cannot be applied."
        yield gauge("projection_parked_commits", text, sum(each.waiting for each in parked))
        yield total("projection_commits_applied", "Commits applied to the read model.", status.applied)

    def _broker_figures(self) -> Iterator[Metric]:
        counters = self._connection.counters
        yield gauge("broker_connected", "1 where the broker answers.", self._connection.connected)
        yield total("broker_reconnects", "Connections that were replaced.", counters.reconnects + counters.replaced)
        text = "Share of each limit of the broker that is used, from 0 to 1; appends fail at 1."
        yield gauges("broker_limit_used_ratio", text, "limit", {room.kind: room.share for room in self._log.writes.rooms()})

    def _write_figures(self) -> Iterator[Metric]:
        writes, timings = self._log.writes.now(), self._log.timings
        known = None if writes.state is WriteState.UNKNOWN else not writes.fail
        yield gauge("writes_ready", "1 if appends are taken, 0 if they fail, NaN if it is not known.", known)
        text = "1 for the state of appends now, 0 for the others."
        yield gauges("writes_state", text, "state", {state.value: state is writes.state for state in WriteState})
        yield HistogramMetricFamily(
            "append_duration_seconds",
            "Time until the broker had stored what was appended.",
            buckets=[("+Inf" if bound == inf else str(bound), float(count)) for bound, count in timings.cumulative()],
            sum_value=timings.total,
        )
        yield total("appends_failed", "Appends that were refused, or whose outcome was not known in time.", self._log.failed)
        yield total("appends_shared", "Appends that were stored in a batch shared with others.", self._log.group.shared)
        text = "Appends that lost against another writer and were decided again."
        yield total("command_conflicts", text, self.commands.conflicts)

    def _scrub_figures(self) -> Iterator[Metric]:
        current, complete, damages = self.scrubber.current, self.scrubber.complete, self.scrubber.found
        text = "Sequence that the pass over the log has reached which runs, or ran last."
        yield gauge("log_scrub_position", text, None if current is None else current.position)
        text = "When the last complete pass over the log ended, in seconds since 1970."
        ended = None if complete is None or complete.ended is None else complete.ended.timestamp()
        yield gauge("log_scrub_completed_timestamp_seconds", text, ended)
        text = "Records of the log that are damaged, as far as a pass of this process has found."
        yield gauge("log_damaged_records", text, None if damages is None else damages.count)
