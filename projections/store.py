"""The port of a read-model database.

`projections.stores.sqlite` and `projections.stores.postgres` implement it and pass one conformance suite.

`Reader` is the part that looks, `Store` the part that changes: only a projector (and migrations) need the second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from projections.model import Change, Column, ColumnType, Projection, Table

Row = Mapping[str, Any]
Argument = str | int | float | bool | datetime | None


@attrs.frozen(kw_only=True)
class Checkpoint:
    """Up to where a projection has applied the log: its version, the stream's incarnation, the last sequence applied.

    `applied` counts the commits of the categories it handles that were applied to reach it, since the tables were empty.
    """

    projection: str
    version: int
    incarnation: str
    sequence: int
    applied: int


@attrs.frozen
class KeyRecord:
    """Where an idempotency key took effect: fingerprint of the request, aggregate's subject, sequence of the commit."""

    key: str
    fingerprint: str | None
    subject: str
    sequence: int


KEYS = Table(
    "command_keys", (Column("key"), Column("fingerprint"), Column("subject"), Column("sequence", "integer")), key=("key",)
)
"""The table of idempotency keys, which every store has: derived from the log like any other."""


@attrs.frozen(kw_only=True)
class Parked:
    """An aggregate that a projection has set aside: one of its commits cannot be applied, and those after it wait in order.

    `sequence` is that commit, `types` are the types of its events (empty where it cannot even be read), `error` the reason in a
    line, `traceback` where it arose, `at` when it was parked. `waiting` counts the commits that are not applied, itself among
    them, up to sequence `last`. For the idempotency keys of a commit that cannot be read, `projection` is the name of `KEYS`.
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
        """What it is found by."""
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
    """What became of a transaction of steps."""

    STORED = "stored"
    ALREADY = "already"
    """Every step's `after` was the checkpoint before: it had been stored by an earlier try."""
    MISMATCH = "mismatch"
    """A checkpoint was neither `before` nor `after`: another projector is at work. Nothing was written."""


@attrs.frozen
class SchemaVersion:
    """The number of the last migration applied, 0 for none; `dirty` where one was left half done.

    `taken_back`: by taking back a migration, or by `force`: so these are not simply the tables of an older program. Two of one
    number are equal either way.
    """

    version: int
    dirty: bool = False
    taken_back: bool = attrs.field(default=False, eq=False)


@attrs.frozen
class StoredColumn:
    """A column as the database has it.

    `type` is the database's own name for it, `holds` what of ours it can hold unchanged, `key` its place in the primary
    key (0 for the first column of it, None: not in it).
    """

    name: str
    type: str
    holds: frozenset[ColumnType]
    key: int | None


class Snapshot(Protocol):
    """The tables and the checkpoints as they were at one moment, whatever is written meanwhile."""

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""

    def scan(self, table: Table, *, batch: int = 1000) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows of a table by ascending key (text by its UTF-8 bytes), in lists of 1 to `batch`.

        Values as in `Column`, and booleans as bool.
        """


class Queryable(Protocol):
    """What queries need of a database."""

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query. Parameters are written `$1`, `$2`, … in either dialect.

        For what an index finds: SQLite answers in the event loop itself, since a thread costs five times a point select.
        """

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """As `fetch`, for what reads much: the event loop goes on meanwhile."""

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""


class Reader(Queryable, Protocol):
    """Looks at a read-model database. What is raised where it cannot be read: StoreUnavailable, StoreDamaged."""

    dialect: str
    """`sqlite` or `postgres`: which migration files are used."""

    @property
    def identity(self) -> str:
        """Names the database, the same for all processes that are given its address; no secret is in it."""

    async def open(self) -> None:
        """Open the database; a Store makes the tables of its own where they are missing."""

    async def close(self) -> None:
        """Finish what is being written and close."""

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence."""

    async def find_key(self, key: str) -> KeyRecord | None:
        """Where an idempotency key took effect, as far as this read model has been brought."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Everything as it is now, for reading whole tables beside the event loop."""

    async def schema(self) -> SchemaVersion:
        """The last migration applied."""

    async def columns(self, table: str) -> Sequence[StoredColumn]:
        """The columns of a table in order, none where there is no such table."""


class LeaderElection(Protocol):
    """How several processes that have one database open take turns: one of them writes, the others are told what it wrote."""

    async def take(self) -> bool:
        """Become the one that writes, or stay so. False where another process is. Raises StoreUnavailable."""

    async def lost(self) -> None:
        """Return when it is no longer this process's turn: the connection that writes has ended."""

    async def release(self) -> None:
        """Let another process have its turn."""

    def news(self) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Checkpoint] | None]]:
        """The checkpoints now, and again whenever a process has moved them; None about once a second where none has.

        Raises StoreUnavailable where the database can no longer tell.
        """


class Store(Reader, Protocol):
    """A database that holds a read model, its checkpoints and the idempotency keys, and the only one to write to it."""

    withheld: str | None
    """Why nothing may be asked of its tables now: `fetch` and the like raise StoreUnavailable with that. None where all may."""

    @property
    def turns(self) -> LeaderElection | None:
        """How it is shared with other processes; None where it belongs to one alone as long as it is open."""

    async def advance(
        self, steps: Sequence[Step], keys: Sequence[KeyRecord] = (), parked: Mapping[Place, Parked | None] = NOTHING_PARKED
    ) -> CheckpointOutcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`.

        What is `parked` is written in the same transaction, over what was there of the same place; None: it is taken away.

        Of several changes to one row the last is written. Rows are put in the order of the steps and of their projections'
        tables, then deleted in the reverse order; foreign keys are checked at the end. Of several records of one key the
        first ever written stays. Raises StoreUnavailable, RowRefused; then nothing was written.
        """

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections, remove their checkpoints and what they have parked, in one transaction."""

    async def migrate(
        self, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
    ) -> Sequence[str] | None:
        """Run the statements of one migration and record its version, in one transaction.

        None where the version is not `before` (any more): nothing was done. Otherwise the names of the projections of
        whose tables one came, went, or has other columns or another number of rows than before: they are forgotten, as by
        `forget`, so that they are filled from the log again.
        Raises MigrationError where the statements fail; then nothing was changed.
        """

    async def leave_indexes_out(self, projections: Sequence[Projection]) -> None:
        """Do without the indexes of empty tables that only queries need, until `make_indexes`: rows come in faster then.

        Those of keys stay, those that must be unique, and those of columns that refer to other rows. They are left out also for
        whoever opens the database later; a migration makes them first. For tables that nobody queries meanwhile.
        """

    async def make_indexes(self) -> None:
        """Make the indexes that have been left out, of all rows there are; nothing where none is."""
