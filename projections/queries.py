"""Reading tables: statements put together piece by piece, parts of ordered lists, and one moment for several queries.

A part is of one list, or of one list for each of many parents. Almost all of it is in the common dialect of SQLite and Postgres.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import attrs
import msgspec
import structlog

from eventlog import Unavailable
from eventlog.admin.scrub import ScrubState
from projections.errors import ProjectionError
from projections.model import ReadModel
from projections.store import Argument, Queryable, Reader, ReadTransaction, Row, Store

T = TypeVar("T")

MOST_KEYS = 1000
"""Keys that one statement names."""


@attrs.define
class Sql:
    """A statement with its arguments, put together piece by piece."""

    text: str
    arguments: list[Argument] = attrs.field(factory=list)

    def add(self, piece: str, *values: Argument) -> None:
        """Add a piece whose `{}` stand for these values."""
        self.text += " " + piece.format(*(self._place(value) for value in values))

    def any_of(self, piece: str, values: Iterable[Argument]) -> None:
        """Add a piece whose `{}` stands for a list of these values."""
        self.text += " " + piece.format(", ".join(map(self._place, values)))

    def _place(self, value: Argument) -> str:
        self.arguments.append(value)
        return f"${len(self.arguments)}"


Key = tuple[Argument, ...]


@attrs.frozen(kw_only=True)
class ListPart:
    """Which part of an ordered list is wanted: `limit` rows at most between two keys, from the end where `backward`."""

    limit: int
    after: Key | None = None
    before: Key | None = None
    backward: bool = False


@attrs.frozen
class FoundPart(Generic[T]):
    """The items of a part, in order, and whether there are `more` in the direction in which it was read."""

    items: Sequence[T]
    more: bool


@attrs.frozen(kw_only=True)
class JoinedList:
    """The rows of a table that belong to a parent by a `condition`.

    The statement calls a row `alias`. `key` is the primary key of the table.
    """

    table: str
    alias: str
    key: str
    condition: str


_JOINS = {
    "sqlite": ("JOIN {table} AS {alias} ON {alias}.{key} IN (SELECT {key} FROM {table} WHERE {condition}", ")"),
    "postgres": ("CROSS JOIN LATERAL (SELECT * FROM {table} WHERE {condition}", ") AS {alias}"),
}
"""SQLite has no LATERAL. With IN, Postgres runs the inner statement for each pair of a parent and a row of the whole table."""


@attrs.frozen
class SortOrder:
    """The columns that a list is ordered by, which together are different for each row."""

    columns: tuple[str, ...]
    descending: bool = False

    def limit(self, sql: Sql, part: ListPart) -> None:
        """Add the clauses for the part and one row more; conditions come before it."""
        self.between(sql, part)
        sql.add(f"ORDER BY {self.text(backward=part.backward)} LIMIT {{}}", part.limit + 1)

    def between(self, sql: Sql, part: ListPart) -> None:
        """Add the clauses for the rows between the keys of the part; conditions come before it."""
        columns = ", ".join(self.columns)
        for key, wants_greater in ((part.after, not self.descending), (part.before, self.descending)):
            if key is not None:
                places = ", ".join("{}" for _ in key)
                sql.add(f"AND ({columns}) {'>' if wants_greater else '<'} ({places})", *key)

    def join(self, sql: Sql, part: ListPart, of: JoinedList, dialect: str) -> None:
        """Join the part, and one row more, of the list of each parent that the statement has so far."""
        before, after = (piece.format(**attrs.asdict(of)) for piece in _JOINS[dialect])
        sql.add(before)
        self.limit(sql, part)
        sql.add(after)

    def text(self, *, backward: bool = False, prefix: str = "") -> str:
        """The columns of an ORDER BY."""
        direction = " DESC" if self.descending is not backward else ""
        return ", ".join(f"{prefix}{column}{direction}" for column in self.columns)


async def selected(store: Queryable, sql: Sql, order: SortOrder, part: ListPart, view: Callable[[Row], T]) -> FoundPart[T]:
    """The part of a list that a statement selects, in an order."""
    order.limit(sql, part)
    rows = await store.fetch_in_thread(sql.text, *sql.arguments)
    return await _made(rows, lambda: _part(rows, part, view))


async def grouped(rows: Sequence[Row], column: str, part: ListPart, view: Callable[[Row], T]) -> dict[Any, FoundPart[T]]:
    """The same for rows of many lists, by the value of the column that tells them apart."""

    def made() -> dict[Any, FoundPart[T]]:
        lists: dict[Any, list[Row]] = {}
        for row in rows:
            lists.setdefault(row[column], []).append(row)
        return {key: _part(of, part, view) for key, of in lists.items()}

    return await _made(rows, made)


async def listed(rows: Sequence[Row], view: Callable[[Row], T]) -> list[T]:
    """All rows of a statement."""
    return await _made(rows, lambda: [view(row) for row in rows])


async def keyed(rows: Sequence[Row], column: str, view: Callable[[Row], T]) -> dict[Any, T]:
    """The rows by the value of a column, which is different for each."""
    return await _made(rows, lambda: {row[column]: view(row) for row in rows})


def _part(rows: Sequence[Row], part: ListPart, view: Callable[[Row], T]) -> FoundPart[T]:
    items = [view(row) for row in rows[: part.limit]]
    return FoundPart(items[::-1] if part.backward else items, more=len(rows) > part.limit)


async def _made(rows: Sequence[Row], make: Callable[[], T]) -> T:
    """Make values of rows: in a thread if they are many, so that the event loop has its turns."""
    return make() if len(rows) <= _MANY else await asyncio.to_thread(make)


async def count_of(store: Queryable, sql: Sql) -> int:
    """The number of rows of a statement."""
    rows = await store.fetch_in_thread(f"SELECT count(*) AS found FROM ({sql.text}) AS counted", *sql.arguments)  # noqa: S608 - put together by Sql
    return int(rows[0]["found"])


async def counts_for(store: Queryable, sql: Sql, column: str) -> dict[Any, int]:
    """The numbers in the column `found` of the rows of a statement, by the value of another column."""
    return {row[column]: int(row["found"]) for row in await fetch_for(store, sql)}


async def fetch_for(store: Queryable, sql: Sql) -> Sequence[Row]:
    """The rows of a statement that is about many keys: in a thread if it is about more than a few."""
    fetch = store.fetch if len(sql.arguments) <= _FEW else store.fetch_in_thread
    return await fetch(sql.text, *sql.arguments)


_FEW = 20
"""Keys of a statement that takes less time than a change of threads."""
_MANY = 200
"""Rows that are converted without a thread: it takes about a millisecond."""


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
