"""Queries of a block that see one moment of the tables, and the state of the scrubber."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

import msgspec
import structlog

from eventlog import Unavailable
from eventlog.admin.scrub import ScrubState
from projections.errors import ProjectionError
from projections.model import ReadModel
from projections.store import Argument, Queryable, Reader, ReadTransaction, Row, Store


class SnapshotQueries:
    """The tables of a read model as `Queryable`. Inside `moment` the queries of the same task see them as they were at its begin.

    Objects that share it are made once, not for each request.
    """

    def __init__(self, reader: Reader, model: ReadModel) -> None:
        self._reader = reader
        self._projections = tuple(projection.name for projection in model.projections)
        self._now: ContextVar[ReadTransaction | None] = ContextVar("moment", default=None)

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[int]:
        """Answer the queries of the block from one read transaction: the one of a block around it, if there is one.

        The block gets the sequence of the log up to which the tables are complete at that moment. Raises StoreUnavailable,
        StoreDamaged.
        """
        if (around := self._now.get()) is not None:
            yield self._sequence(around)
            return
        async with self._reader.transaction() as reading:
            before = self._now.set(reading)
            try:
                yield self._sequence(reading)
            finally:
                self._now.reset(before)

    def _sequence(self, reading: ReadTransaction) -> int:
        checkpoints = (reading.checkpoints.get(name) for name in self._projections)
        return min((0 if at is None else at.sequence for at in checkpoints), default=0)

    @property
    def dialect(self) -> str:
        """See `Queryable.dialect`."""
        return self._reader.dialect

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `Queryable.fetch`."""
        return await self._source().fetch(sql, *arguments)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """See `Queryable.fetch_in_thread`."""
        return await self._source().fetch_in_thread(sql, *arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """See `Queryable.fetch_one`."""
        return await self._source().fetch_one(sql, *arguments)

    def _source(self) -> Queryable:
        return self._now.get() or self._reader


log = structlog.get_logger(__name__)


class KeptScrubs:
    """The state of the passes over the log of one stream (`eventlog.admin.scrub.ScrubMemory`)."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream

    async def load(self) -> ScrubState | None:
        """The state that was kept last, or None. Raises Unavailable."""
        try:
            text = await self._store.scrubs(self._stream)
        except ProjectionError as error:
            raise Unavailable(str(error)) from error
        try:
            return None if text is None else msgspec.json.decode(text, type=ScrubState)
        except msgspec.DecodeError as error:  # of another version of the program: the next pass replaces it
            log.warning("the state of scrubbing cannot be read", stream=self._stream, reason=str(error))
            return None

    async def keep(self, state: ScrubState) -> None:
        """Keep a state. Raises Unavailable, also in a process that does not lead."""
        try:
            await self._store.keep_scrubs(self._stream, msgspec.json.encode(state).decode())
        except ProjectionError as error:
            raise Unavailable(str(error)) from error
