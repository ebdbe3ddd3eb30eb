"""The port of a read-model database, and of copies next to the live tables, in the same database.

`projections.stores.sqlite` and `projections.stores.postgres` implement it and pass one conformance suite.

`Reader` is the part that looks, `Store` the part that changes: only a projector (and migrations) need the second. A copy is a
separate store, with its own checkpoints and migrations, which can replace the live tables: every function that fills or reads a
read model works on a copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import attrs

from eventlog.port import is_repaired
from projections.errors import CopyRefused
from projections.model import Change, Projection, StoredColumn, Table

Row = Mapping[str, Any]
Argument = str | int | float | bool | datetime | None


@attrs.frozen(kw_only=True)
class Checkpoint:
    """The position of a projection in the log: its version, the stream's incarnation, the last sequence applied.

    `applied` counts the commits of the categories it handles that were applied to reach it, since the tables were empty.
    `record` is the digest of the commit at `sequence`, `digest` the running digest of the log up to and with it
    (`eventlog.support.chain`). They are None at sequence 0, and in a checkpoint of no projection.
    """

    projection: str
    version: int
    incarnation: str
    sequence: int
    applied: int
    record: str | None = None
    digest: str | None = None


@attrs.frozen
class Mark:
    """The running digest of a stream after a sequence, and the digest of the commit there.

    They show the sequence at which two logs differ.
    """

    stream: str
    sequence: int
    digest: str
    record: str


@attrs.frozen(kw_only=True)
class Parked:
    """An aggregate that a projection has set aside: one of its commits cannot be applied, and those after it wait in order.

    `sequence` is that commit, `types` are the types of its events (empty if it cannot even be read), `error` the reason in a
    line, `traceback` its source lines, `at` when it was parked. `waiting` counts the commits that are not applied, itself among
    them, up to sequence `last`.
    """

    projection: str
    subject: str
    sequence: int
    types: str
    error: str
    traceback: str
    at: datetime
    waiting: int
    last: int

    @property
    def place(self) -> Place:
        """Its key."""
        return self.projection, self.subject


Place = tuple[str, str]
"""Projection and subject of a parked aggregate."""


@attrs.frozen(kw_only=True)
class Step:
    """One batch for one projection: from a checkpoint (None: nothing applied yet) to the next, with the rows between."""

    projection: Projection
    before: Checkpoint | None
    after: Checkpoint
    changes: Sequence[Change]


NOTHING_PARKED: Mapping[Place, Parked | None] = MappingProxyType({})


class CheckpointOutcome(Enum):
    """The outcome of a transaction of steps."""

    STORED = "stored"
    ALREADY = "already"
    """Every step's `after` was the checkpoint before: it had been stored by an earlier try."""
    MISMATCH = "mismatch"
    """A checkpoint was neither `before` nor `after`: another projector is at work. No row was written."""


@attrs.frozen
class SchemaVersion:
    """The number of the last migration applied, 0 for none; `dirty` if one was left half done.

    `taken_back`: by taking back a migration, or by `force`: so these are not simply the tables of an older program. Two of one
    number are equal either way.
    """

    version: int
    dirty: bool = False
    taken_back: bool = attrs.field(default=False, eq=False)


class Snapshot(Protocol):
    """The tables and the checkpoints as they were at one moment, independent of later writes."""

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""

    def scan(self, table: Table, *, batch: int = 1000) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows of a table by ascending key (text by its UTF-8 bytes), in lists of 1 to `batch`.

        Values as in `Column`, and booleans as bool.
        """


class Queryable(Protocol):
    """The part of a database that queries need."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgres`: the dialect of statements and of migration files."""

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query. Parameters are written `$1`, `$2`, … in either dialect.

        For what an index finds: SQLite answers in the event loop itself, since a thread costs five times a point select.
        """

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """As `fetch`, for a query that reads much: it does not block the event loop."""

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""


class ReadTransaction(Queryable, Protocol):
    """Queries that see the tables as they were at one moment, one statement after the other.

    If a statement was interrupted, no other may follow it in the same transaction.

    `checkpoints` are the checkpoints at that moment, by projection.
    """

    checkpoints: Mapping[str, Checkpoint]


class Reader(Queryable, Protocol):
    """Reads a read-model database. Errors if it cannot be read: StoreUnavailable, StoreDamaged."""

    @property
    def identity(self) -> str:
        """Names the database, the same for all processes that are given its address; no secret is in it."""

    async def open(self) -> None:
        """Open the database; a Store makes its own tables if they are missing."""

    async def close(self) -> None:
        """Finish what is being written and close."""

    def is_replaced(self) -> bool:
        """Return whether another database is at the address than the one that was opened: this one reads the former tables."""

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence."""

    async def marks(self, stream: str, *, above: int = 0) -> Sequence[Mark]:
        """The marks of a stream above a sequence, in order."""

    async def scrubs(self, stream: str) -> str | None:
        """The last state of the passes over a log that `keep_scrubs` was given, or None."""

    def state(self) -> object:
        """Name the present state of all tables: no row changed between two calls with equal results. None: it is not known."""

    async def check_readable(self, tables: Sequence[str]) -> None:
        """Check that tables can be read now. Raises StoreUnavailable, StoreDamaged, and ProjectionError if one is missing."""

    async def sizes(self, tables: Sequence[str]) -> Mapping[str, int]:
        """About how many rows these tables have, without counting them: deleted rows may be included."""

    def transaction(self) -> AbstractAsyncContextManager[ReadTransaction]:
        """A read transaction on a pooled connection. A statement is interrupted if its caller is cancelled, and at the end."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Everything as it is now, for reading whole tables without blocking the event loop."""

    async def schema(self) -> SchemaVersion:
        """The last migration applied."""

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none if there is no such table."""


class LeaderElection(Protocol):
    """The election of a leader among processes on one database: the leader writes, the others learn of its writes."""

    @property
    def silent(self) -> float | None:
        """Seconds for which the process that leads was not heard of, as last looked; None if this one leads, or unknown."""

    async def take(self) -> bool:
        """Become the one that writes, or stay so. False where another process is. Raises StoreUnavailable."""

    async def lost(self) -> None:
        """Return when it is no longer this process's turn: the connection that writes has ended."""

    async def release(self) -> None:
        """Let another process have its turn."""

    def news(self) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Checkpoint] | None]]:
        """The checkpoints now, and again whenever a process has moved them; None about once a second if none has.

        Raises StoreUnavailable where the database can no longer tell.
        """


class Store(Reader, Protocol):
    """A database that holds a read model, and its checkpoints, and the only one to write to it."""

    withheld: str | None
    """Reason why queries are refused now, or None. `fetch` and the like raise StoreUnavailable with it."""

    @property
    def election(self) -> LeaderElection | None:
        """How it is shared with other processes; None if one process alone has it while it is open."""

    async def advance(
        self,
        steps: Sequence[Step],
        parked: Mapping[Place, Parked | None] = NOTHING_PARKED,
        marks: Sequence[Mark] = (),
    ) -> CheckpointOutcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`.

        `marks` are written in the same transaction; one that is there stays.

        Entries of `parked` are written in the same transaction and replace the stored ones. None removes the stored one.

        Of several changes to one row the last is written. Rows are put in the order of the steps and of their projections'
        tables, then deleted in the reverse order; foreign keys are checked at the end. Raises StoreUnavailable,
        RowRefused, without an effect.
        """

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections, remove their checkpoints and parked aggregates, in one transaction."""

    async def keep_scrubs(self, stream: str, state: str) -> None:
        """Keep the state of the passes over a log, in place of the one before. It stays if a copy replaces the live tables."""

    async def migrate(
        self, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
    ) -> Sequence[str] | None:
        """Run the statements of one migration and record its version, in one transaction.

        None if the version is not `before` (any more): the call had no effect. Otherwise the names of the projections with a
        table that was added, removed, or that has other columns or another number of rows than before: they are forgotten, as
        by `forget`, so that they are refilled from the log.
        Raises MigrationError if the statements fail, without an effect.
        """

    async def leave_indexes_out(self, projections: Sequence[Projection]) -> None:
        """Drop the indexes of empty tables that only queries need, until `make_indexes`: rows are written faster then.

        Indexes of keys, unique indexes, and indexes of columns that refer to other rows stay. They are also missing for a process
        that opens the database later; a migration makes them first. For tables without queries at that time.
        """

    async def make_indexes(self) -> None:
        """Make the indexes that have been left out, of all rows there are; nothing if none is."""


class CopyPart(StrEnum):
    """The purpose of a copy."""

    NEW = "new"
    """It is being made, or has been, and takes the place of the live tables next."""
    OLD = "old"
    """It was live before, and is kept to go back to."""


class Copies(Protocol):
    """The copies of a read model in one database, which any process may have open."""

    async def there(self) -> Collection[CopyPart]:
        """Which there are. Raises StoreUnavailable, StoreDamaged."""

    def store(self, part: CopyPart) -> Store:
        """A copy to write to, not open yet. NEW is made by opening it if it is missing; one process at a time has it."""

    def reader(self, part: CopyPart) -> Reader:
        """A copy to look at, not open yet."""

    async def discard(self, part: CopyPart) -> None:
        """Remove a copy, if it is there. Raises StoreInUse while another process has it, StoreUnavailable."""


@runtime_checkable
class Switching(Store, Protocol):
    """A store whose live tables can change places with a copy."""

    async def switch(self, projections: Collection[str], part: CopyPart = CopyPart.NEW) -> None:
        """Put NEW in the place of the live tables, which are OLD then (an older OLD goes), in one transaction.

        `projections` are the read model's: NEW has to be at least as far as the live tables in each of them. All other
        checkpoints move along. No read fails, and no read sees both. NEW must not be open. With OLD as `part` it is the other
        way round: OLD takes the place of the live tables, which are NEW then. Raises CopyRefused, StoreInUse,
        StoreUnavailable, without an effect.
        """


def check_as_far(projections: Collection[str], live: Mapping[str, Checkpoint], copy: Mapping[str, Checkpoint]) -> None:
    """Check that a copy has of each projection at least what the live tables have, of the same stream or its repair.

    Raises CopyRefused.
    """
    for name in projections:
        ours, theirs = live.get(name), copy.get(name)
        if ours is None:
            continue
        if theirs is None or theirs.sequence < ours.sequence:
            reached = 0 if theirs is None else theirs.sequence
            raise CopyRefused(f"projection {name!r} of the copy is at sequence {reached}, the live one at {ours.sequence}")
        if theirs.incarnation != ours.incarnation and not is_repaired(theirs.incarnation, ours.incarnation):
            raise CopyRefused(f"projection {name!r} of the copy was made from another stream")
