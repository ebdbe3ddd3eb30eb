"""The read side of a process that only reads: a read model that another process fills, and its events once they are in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from math import inf
from typing import Any, TypeAlias, TypeVar

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from eventlog import AggregateId, EventLog, EventLogError, Head, LogDamaged, Unavailable
from eventlog.history import EventFilter, Page, search_events
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from eventlog.support.timers import Backoff
from httpkit.monitoring import NOT_KNOWN
from httpkit.sse.hub import Hub
from projections.errors import (
    ArgumentRefused,
    Behind,
    MigrationError,
    ProjectionError,
    ProjectorStopped,
    StoreDamaged,
    StoreUnavailable,
)
from projections.migrations import check_tables
from projections.model import ReadModel
from projections.store import Argument, Checkpoint, Parked, Reader, ReadTransaction, Row
from projections.stores.databases import reader_at
from servicekit.access.service_access import TokenDirectory
from servicekit.access.tokens import TokenModel
from servicekit.parts import Part
from servicekit.read_side import CommitFrames, Feed, NotWritten, check_applied, note_of

_log = structlog.get_logger(__name__)

_SIZES_KEPT = 10.0
"""Seconds for which the sizes of tables are known."""
_LOOK_EVERY = 0.2
"""Seconds between looks for other tables at the place of the open ones."""


class ReplicaTables:
    """The tables of a read model that another process fills. The database is opened when it is first asked for.

    `statements` counts the statements to it.
    """

    def __init__(self, url: str, model: ReadModel) -> None:
        self.statements = 0
        self.parked: Sequence[Parked] = ()
        """The parked aggregates, as `check` found them last."""
        self._url = url
        self._model = model
        self._reader: Reader | None = None
        self._opening = asyncio.Lock()
        self._looked_at = -inf
        self._sizes: Mapping[str, int] = {}
        self._sized_at = -inf

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[ReplicaTransaction]:
        """A read transaction. Raises StoreUnavailable, StoreDamaged."""
        reader = await self.opened()
        async with reader.transaction() as reading:
            yield ReplicaTransaction(reading, self)

    def sequence_of(self, checkpoints: Mapping[str, Checkpoint]) -> int:
        """The sequence up to which tables with these checkpoints are complete."""
        found = (checkpoints.get(projection.name) for projection in self._model.projections)
        return min((0 if at is None else at.sequence for at in found), default=0)

    async def sizes(self) -> Mapping[str, int]:
        """About how many rows each table has, or had some seconds ago. Raises as `transaction`."""
        now = asyncio.get_running_loop().time()
        if now - self._sized_at > _SIZES_KEPT:
            tables = [table.name for projection in self._model.projections for table in projection.tables]
            self._sizes = await (await self.opened()).sizes(sorted(set(tables)))
            self._sized_at = now
        return self._sizes

    async def opened(self) -> Reader:
        """The database. Raises StoreUnavailable, StoreDamaged.

        It is opened again if others have taken its place, as after a rebuild.
        """
        reader = self._reader
        if reader is not None and not self._is_replaced(reader):
            return reader
        if reader is not None and self._reader is reader:
            await self.close()
        async with self._opening:
            if self._reader is None:
                self._reader = await self._open()
            return self._reader

    def _is_replaced(self, reader: Reader) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < _LOOK_EVERY:
            return False
        if reader.is_replaced():
            return True
        self._looked_at = now
        return False

    async def _open(self) -> Reader:
        reader = reader_at(self._url)
        await reader.open()
        try:
            await self._check_tables(reader)
        except BaseException:
            await reader.close()
            raise
        return reader

    async def _check_tables(self, reader: Reader) -> None:
        try:
            await check_tables(reader, self._model)
        except MigrationError as error:
            raise StoreUnavailable(f"the tables belong to another version of the program: {error}") from error

    async def keep(self) -> None:
        """Close the database when this is cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the database. The next query opens it."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def reached(self) -> int:
        """Return the sequence up to which the tables are complete, or 0 if they cannot be read."""
        try:
            checkpoints = await (await self.opened()).checkpoints()
        except ProjectionError as error:
            _log.debug("read model cannot be read", read_model=self._model.name, reason=str(error))
            await self.close()
            return 0
        return self.sequence_of(checkpoints)

    async def wait_for(self, sequence: int, seconds: float) -> None:
        """Return when the tables have a sequence. It polls them. Raises Behind after that time."""
        loop, backoff = asyncio.get_running_loop(), Backoff(0.002, 0.1)
        until = loop.time() + seconds
        while (reached := await self.reached()) < sequence:
            if loop.time() + backoff.next > until:
                raise Behind(f"the read model has sequence {reached}; {sequence} was asked for")
            await backoff.pause()

    async def check(self) -> None:
        """Check that the tables are as declared, and look for `parked` aggregates. Raises StoreUnavailable, StoreDamaged."""
        try:
            reader = await self.opened()
            await self._check_tables(reader)
            self.parked = await reader.parked()
        except (StoreUnavailable, StoreDamaged):
            await self.close()
            raise


class ReplicaTransaction:
    """A read transaction whose statements are counted. `sequence` is the position of the log that its tables show."""

    def __init__(self, reading: ReadTransaction, tables: ReplicaTables) -> None:
        self._reading = reading
        self._tables = tables
        self.dialect = reading.dialect
        self.checkpoints = reading.checkpoints
        self.sequence = tables.sequence_of(reading.checkpoints)

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch`."""
        self._tables.statements += 1
        return await self._reading.fetch(sql, *arguments)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `projections.store.Queryable.fetch_in_thread`."""
        self._tables.statements += 1
        return await self._reading.fetch_in_thread(sql, *arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """See `projections.store.Queryable.fetch_one`."""
        self._tables.statements += 1
        return await self._reading.fetch_one(sql, *arguments)


T = TypeVar("T")

Broker: TypeAlias = Connection
"""The connection to the broker of a process that only reads."""


_AWAY = 1.0
"""Seconds between tries while the broker is away."""
_SEARCHES = 2
"""Searches in the log at a time: each may read 20,000 commits."""


def connected(url: str, *, name: str) -> AbstractAsyncContextManager[Broker]:
    """Return a connection to the broker under this name, open during a block. Raises Unavailable if it does not answer."""
    return Connection.open(url, name=name)


class ReadReplica:
    """A read model that is only read, and its events.

    `frames` makes frames of the log's commits. They arrive in `hub` when the tables have them. Another process fills the tables.
    Without a `connection` to the broker there are no events. `max_lag`: seconds for which the tables may be behind an event
    before this is not ready.
    """

    def __init__(
        self,
        url: str,
        model: ReadModel,
        *,
        connection: Connection | None,
        frames: Callable[[EventLog], CommitFrames],
        max_lag: float = 30.0,
    ) -> None:
        self.tables = ReplicaTables(url, model)
        self._model = model
        self._max_lag = max_lag
        self.connection = connection
        """The broker that it follows; None without one."""
        self._searching = asyncio.Semaphore(_SEARCHES)
        self._waits_since: float | None = None
        self._damaged: LogDamaged | None = None
        self._head: Head | None = None
        self._followed = 0
        self._event_log: JetStreamLog | None = None
        self.hub: Hub | None = None
        if connection is not None:
            self._event_log = JetStreamLog(connection, model.stream, model.registry)
            made = frames(self._event_log)
            self.hub = Hub(made.replay)
            self._feed = Feed(made, self.hub)

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts: they follow the events, and check that the tables have them in time."""
        name = self._model.name
        parts = [Part(f"{name} database", self.tables.keep, check=self.tables.check, note=self._parked)]
        if (event_log := self._event_log) is not None:
            parts.append(Part(f"{name} events", partial(self._kept, event_log), check=self._check_events))
            parts.append(Part(f"{name} event stream", self._feed.run))
        return parts

    def directory(self, tokens: TokenModel) -> TokenDirectory:
        """The tokens of the service that fills this read model."""
        log = self._event_log
        return TokenDirectory(tokens, log, self.tables.opened, is_connected=lambda: log is not None and log.connection.connected)

    def transaction(self) -> AbstractAsyncContextManager[ReplicaTransaction]:
        """A read transaction on the database, opened when it is first asked for. Raises StoreUnavailable, StoreDamaged."""
        return self.tables.transaction()

    async def sizes(self) -> Mapping[str, int]:
        """About how many rows each table has, or had some seconds ago. Raises StoreUnavailable, StoreDamaged."""
        return await self.tables.sizes()

    async def wait_for(self, sequence: int, seconds: float) -> None:
        """Return when the tables have a sequence. Raises Behind after that time, NotWritten if the log does not have it.

        Raises AggregateParked if the commit is not in the tables because its aggregate is parked, and StoreUnavailable or
        StoreDamaged if that cannot be read. Without a broker it is not known whether the log has a sequence, nor which aggregate
        its commit is of.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if await self.tables.reached() < sequence:
            if (head := await self._asked(lambda log: log.head())) is not None and sequence > head.last:
                raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")
            await self.tables.wait_for(sequence, until - loop.time())
        parked = await (await self.tables.opened()).parked()
        await check_applied(sequence, parked, lambda sequence: self._asked(lambda log: log.at(sequence)))

    async def _asked(self, ask: Callable[[EventLog], Awaitable[T]]) -> T | None:
        """The answer of the log; None without a broker, or if the log does not answer."""
        if self._event_log is None:
            return None
        try:
            return await ask(self._event_log)
        except EventLogError as error:
            _log.info("the log does not answer", stream=self._model.stream, reason=str(error))
            return None

    async def search(self, aggregate: str | None = None, **conditions: Any) -> Page:
        """Return a page of events (`search_events`). Raises StoreUnavailable, and ArgumentRefused for a wrong aggregate."""
        if self._event_log is None:
            raise StoreUnavailable("the log is with the broker: nats_url is not set")
        try:
            named = None if aggregate is None else AggregateId.parse(aggregate)
        except ValueError as error:
            raise ArgumentRefused(f"{aggregate!r} is not an aggregate: {error}") from error
        async with self._searching:
            try:
                return await search_events(self._event_log, EventFilter(aggregate=named, **conditions))
            except EventLogError as error:
                raise StoreUnavailable(f"the log cannot be read: {error}") from error

    # The events

    async def _kept(self, log: JetStreamLog) -> None:
        try:
            await self._follow(log)
        except LogDamaged as error:
            self._damaged = error
            _log.exception("events are not followed any more", read_model=self._model.name)

    async def _follow(self, log: JetStreamLog) -> None:
        assert self.hub is not None
        while True:
            try:
                if self._head is None:
                    self._head = await log.head()
                    self._followed = self._head.last
                    self.hub.start(self._followed)
                async for commits in log.follow(after=self._followed, incarnation=self._head.incarnation):
                    self._waits_since = asyncio.get_running_loop().time()
                    await self.tables.wait_for(commits[-1].sequence, inf)
                    self._waits_since = None
                    self._feed.applied(commits)
                    self._followed = commits[-1].sequence
            except LogDamaged:
                raise
            except EventLogError as error:
                _log.debug("log cannot be read", stream=self._model.stream, reason=str(error))
                await asyncio.sleep(_AWAY)

    # How it is

    def _parked(self) -> str | None:
        note = note_of(self.tables.parked)
        return None if note is None else f"{self._model.name} {note}"

    async def _check_events(self) -> None:
        assert self.hub is not None
        assert self.connection is not None
        if self._damaged is not None:
            raise ProjectorStopped(str(self._damaged))
        if not self.connection.connected:
            raise Unavailable("the broker is not connected")
        await self.hub.check()
        if self._waits_since is not None:
            waited = asyncio.get_running_loop().time() - self._waits_since
            if waited > self._max_lag:
                raise ProjectorStopped(f"the tables have been behind the log for {waited:.0f} s")

    def figures(self, statements: CounterMetricFamily, behind: GaugeMetricFamily) -> None:
        """Add its figures to these metrics, which have the label `function`."""
        name = self._model.name
        statements.add_metric([name], self.tables.statements)
        since = self._waits_since
        waited = NOT_KNOWN if self._event_log is None else 0.0 if since is None else asyncio.get_running_loop().time() - since
        behind.add_metric([name], waited)
