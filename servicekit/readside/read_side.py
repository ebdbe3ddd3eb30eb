"""The parts of a read side put together, its run, and waiting until the tables have a commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import structlog
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from eventlog import Commit, Unavailable
from eventlog.admin.declarations import Stream
from eventlog.admin.scrub import LogScrubber
from eventlog.commands import Commands
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.requests import RequestServer
from eventlog.jetstream.transport.connection import Connection
from eventlog.support.timers import until_one_ends, until_tick
from httpkit.ops.health import Check, Concern, Health
from httpkit.sse.hub import Hub
from projections.errors import Behind, ProjectionError, ProjectorStopped, StoreDamaged
from projections.keys import CommandKeys, LogKeys
from projections.model import ReadModel
from projections.projector.projector import Projector
from projections.projector.report import ReadModelReport, standing
from projections.projector.writer import OnApplied, pauses
from projections.queries.snapshots import KeptScrubs
from projections.rebuild.operations import AdminHandler, subject_of
from projections.rebuild.recovery import damaged, make_again_patiently, open_sound
from projections.rebuild.upgrade import SchemaUpgrade
from projections.store import Store
from projections.stores.databases import copies_of, store_at
from servicekit.broker.broker_watch import BrokerWatch
from servicekit.broker.monitoring import addresses
from servicekit.errors import NotWritten
from servicekit.feed import CommitFrames, Feed
from servicekit.readside.figures import figures
from servicekit.readside.readiness import Readiness, check_applied
from servicekit.serving.background import BackgroundWork, Start

_log = structlog.get_logger(__name__)

AHEAD = 100
"""Commits by which answered commands are ahead of the tables at most. A later command waits, and so no read waits for long."""


class Acknowledgements:
    """The highest sequence that reads of this process have to include. It grows with each command that is acknowledged.

    `seconds`: a read waits no longer for the tables. If it waited in vain, the next reads do not wait until the tables have
    reached the sequence of that time. Their answers name the older position that the tables have.
    """

    def __init__(self, projector: Projector, seconds: float) -> None:
        self._projector = projector
        self._seconds = seconds
        self._owed = 0
        self._missed = 0

    def add(self, sequence: int) -> None:
        """From now on reads include this sequence of the log."""
        self._owed = max(self._owed, sequence)

    @property
    def pending(self) -> bool:
        """Whether the tables lack a command that was acknowledged."""
        return self._projector.position < self._owed

    def unseen(self) -> Awaitable[None] | None:
        """Return what a read has to await before it asks the tables, or None if they have everything that was acknowledged."""
        return self._wait() if self.pending else None

    async def _wait(self) -> None:
        owed = self._owed
        if self._projector.position < self._missed:
            return
        try:
            await self._projector.wait_for(owed, self._seconds)
        except (Behind, ProjectorStopped) as reason:
            self._missed = owed
            _log.warning("reads are answered before the tables have what was acknowledged", sequence=owed, reason=str(reason))


_LOOK_AT_FINDINGS = 10.0
"""Seconds between two looks at the passes over the log that another process makes."""
READ_YOUR_WRITES = 5.0
"""Seconds for which an answer waits for the read model."""


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
    broker's store is known from the results of appends only. `declared`: see `servicekit.broker.broker_watch`.
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
        self.broker = BrokerWatch(connection, model.stream, log.writes, addresses(monitoring_url), declared)
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
        self._acknowledged = Acknowledgements(self.projector, READ_YOUR_WRITES)
        self._handover = SchemaUpgrade(store, copies_of(store), log, model)
        self.maintenance = AdminHandler(self.projector, store, copies_of(store), log, model)
        self._desk = RequestServer(connection, subject_of(model), self.maintenance.take)
        self.commands = Commands(
            log,
            keys=CommandKeys(self.projector, store, in_log=self.keys),
            check_writable=self.projector.check_running,
            now=self.broker.clock.now,
        )
        self._readiness = Readiness(
            connection=connection,
            log=log,
            store=store,
            model=model,
            projector=self.projector,
            keys=self.keys,
            broker=self.broker,
            handover=self._handover,
            scrubber=self.scrubber,
            background=self._background,
            max_lag=max_lag,
        )

    def on_applied(self, listener: OnApplied) -> None:
        """Call `listener` with the commits of each transaction, once they are visible. Before `running`."""
        self._listeners.append(listener)

    def add_note(self, note: Callable[[], str | None]) -> None:
        """Have `/readyz` also show the problem that `note` returns; None: it has none."""
        self._readiness.of_parts.append(note)

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
        self._readiness.until = head.last
        self._acknowledged.add(head.last)  # this process may have acknowledged it before it was restarted
        await self._know_position()
        await self.broker.look()  # the first event has the right time
        rest = {"orders": self._desk.run, "scrubbing": self.scrubber.run, **(beside or {})}
        work: dict[str, Start] = {
            "event stream": self._feed.run,
            "broker's health": self.broker.run,
            "keys of the log": partial(self._read_keys, head.last),
            "findings": self._follow_scrubbing,
            **{name: partial(self.projector.lead.run, run) for name, run in rest.items()},
        }
        # A projector that has stopped needs an operator; readiness shows it, and writes are refused.
        async with self._background.running(work, once={"projector": self._project}):
            yield

    async def _follow_scrubbing(self) -> None:
        """Show the passes of the process that leads, while this one does not."""
        while True:
            if not self.projector.lead.held:
                await self.scrubber.recall()
            await asyncio.sleep(until_tick(_LOOK_AT_FINDINGS))

    async def _read_keys(self, until: int) -> None:
        for pause in pauses():
            try:
                await self.keys.read(until)
            except Unavailable as error:
                _log.info("the keys of the log wait", reason=str(error))
                await asyncio.sleep(pause)
            else:
                return

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
            await self._make_again(error)
            await self._handover.run(self.projector)
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

    async def acknowledge(self, sequence: int) -> int:
        """Let the answer to a command follow its append, and return the sequence. Reads of this process wait for the tables.

        The answer waits as in `wait_visible` if other processes can share the tables, since their reads have no note of it. It
        also waits while the tables are more than `AHEAD` commits behind.
        """
        if self._store.election is not None:
            return await self.wait_visible(sequence)
        self._acknowledged.add(sequence)
        if sequence - AHEAD > self.projector.position:
            await self.wait_visible(sequence - AHEAD)
        return sequence

    def unseen(self) -> Awaitable[None] | None:
        """Return what a read has to await before it asks the tables, or None if they have everything that was acknowledged."""
        return self._acknowledged.unseen()

    def state(self) -> object:
        """Return the state of the tables, equal while no row changes. None: not known, or less than was acknowledged."""
        return None if self._acknowledged.pending else self._store.state()

    async def wait_for(self, sequence: int) -> None:
        """Wait for `min_seq`. Raises NotWritten at once if the log does not have the sequence, and Behind if the tables are late.

        Raises AggregateParked at once if the commit is not in the tables because its aggregate is parked.
        """
        if sequence > self.projector.position:
            head = await self._log.head()
            if sequence > head.last:
                raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        await check_applied(sequence, self.projector.parked.values(), self._log.at)

    async def wait_for_head(self) -> None:
        """Wait until the read model has all that is in the log now. Raises Behind, Unavailable."""
        head = await self._log.head()
        await self.projector.wait_for(head.last, READ_YOUR_WRITES)

    def trouble(self) -> str:
        """Return the reason why commands take long: appends fail, or the tables take no change. An empty text: not known."""
        writes = self._log.writes.now()
        return (writes.reason if writes.fail else self.projector.status().refused) or ""

    def checks(self) -> Mapping[str, Check]:
        """Return the checks that have to pass before the process is ready."""
        return self._readiness.checks()

    def health(self) -> Health:
        """Return the probes: ready if all checks hold, with reads and writes apart, and a note of parked aggregates."""
        concerns = {"broker": Concern.WRITES, "read model": Concern.READS, "writes": Concern.WRITES}
        return Health(self.checks(), note=self.note, concerns=concerns)

    async def standing(self) -> ReadModelReport:
        """Return the state of the read model. Raises Unavailable, StoreUnavailable."""
        return await standing(self._store, copies_of(self._store), self._log, self._model)

    def note(self) -> str | None:
        """Return the problems that do not stop the service, or None without one."""
        return self._readiness.note()

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        return figures(
            projector=self.projector,
            commands=self.commands,
            connection=self._connection,
            log=self._log,
            scrubber=self.scrubber,
            background=self._background,
        )
