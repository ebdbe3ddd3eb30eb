"""The tables of a read model that another process fills: they are read, counted and looked at here, and never written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf

import structlog

from projections.errors import MigrationError, ProjectionError, StoreDamaged, StoreUnavailable
from projections.migrations import check_tables
from projections.model import ReadModel
from projections.store import Argument, Checkpoint, Parked, Reader, ReadTransaction, Row
from projections.stores.databases import reader_at

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

    async def close(self) -> None:
        """Close the database. The next one who asks opens it."""
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

    async def check(self) -> None:
        """See that the tables are as declared, and look for `parked` aggregates. Raises StoreUnavailable, StoreDamaged."""
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
