"""The port of a read-model database. `projections.sqlite` implements it; Postgres will. All pass the same conformance suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

import attrs

from projections.model import Change, Projection

Row = Mapping[str, Any]
Argument = str | int | float | bool | datetime | None


@attrs.frozen(kw_only=True)
class Checkpoint:
    """Up to where a projection has applied the log: its version, the stream's incarnation, the last sequence applied.

    `applied` counts the commits that were applied to reach it, since the tables were empty.
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


@attrs.frozen(kw_only=True)
class Step:
    """One batch for one projection: from a checkpoint (None: nothing applied yet) to the next, with the rows between."""

    projection: Projection
    before: Checkpoint | None
    after: Checkpoint
    changes: Sequence[Change]


class Outcome(Enum):
    """What became of a transaction of steps."""

    STORED = "stored"
    ALREADY = "already"
    """Every step's `after` was the checkpoint before: it had been stored by an earlier try."""
    MISMATCH = "mismatch"
    """A checkpoint was neither `before` nor `after`: another projector is at work. Nothing was written."""


class Store(Protocol):
    """A database that holds a read model, its checkpoints and the idempotency keys."""

    dialect: str
    """`sqlite` or `postgres`: which migration files are used."""

    async def open(self) -> None:
        """Open the database and make the tables of the store itself. Raises StoreUnavailable, StoreDamaged."""

    async def close(self) -> None:
        """Finish what is being written and close."""

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one."""

    async def advance(self, steps: Sequence[Step], keys: Sequence[KeyRecord] = ()) -> Outcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`.

        Rows of one table are written in bulk, the last one per key. Raises StoreUnavailable; then nothing was written.
        """

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections and remove their checkpoints, in one transaction."""

    async def find_key(self, key: str) -> KeyRecord | None:
        """Where an idempotency key took effect, as far as this read model has been brought."""

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        """The rows of a query. Parameters are written `$1`, `$2`, … in either dialect."""

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        """The first row of a query, or None."""

    async def script(self, sql: str, *, forget: Sequence[str] = ()) -> None:
        """Run the statements of a migration in one transaction, dropping the checkpoints of the named projections with it."""
