"""The port of copies: a read model's tables next to the live ones, in the same database, which can replace the live ones.

A copy is a separate store, with its own checkpoints, keys and migrations: every function that fills or reads a read model works
on a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol, runtime_checkable

from eventlog.jetstream.api import is_repaired
from projections.errors import CopyRefused
from projections.store import Checkpoint, Reader, Store


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
