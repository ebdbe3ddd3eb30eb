"""The aggregate that makes category names unique: one per name, held by one category at a time.

A name is reserved and released in the same batch as the category that takes or leaves it, so two can never hold one name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

import attrs

from eventlog import Decider
from pantry.domain.errors import Taken
from pantry.domain.naming import look
from pantry.domain.registry import REGISTRY

CATEGORY = "pantry.category_name"


def key_of(name: str) -> str:
    """The id of a name's aggregate: 32 hex digits. Names that look alike have the same."""
    return hashlib.sha256(look(name).encode()).hexdigest()[:32]


@REGISTRY.event("CategoryNameReserved")
@attrs.frozen(kw_only=True)
class CategoryNameReserved:
    """A category holds the name from now on."""

    name: str
    category_id: str
    at: datetime


@REGISTRY.event("CategoryNameReleased")
@attrs.frozen(kw_only=True)
class CategoryNameReleased:
    """The name is free again."""

    category_id: str
    at: datetime


CategoryNameEvent = CategoryNameReserved | CategoryNameReleased


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class CategoryName:
    """A name and the category that holds it: None if it is free."""

    name: str
    category_id: str | None


def evolve(state: CategoryName | None, event: CategoryNameEvent) -> CategoryName:
    """The name after an event."""
    if isinstance(event, CategoryNameReserved):
        return CategoryName(name=event.name, category_id=event.category_id)
    assert state is not None, "a name begins with CategoryNameReserved"
    return attrs.evolve(state, category_id=None)


@attrs.frozen(kw_only=True)
class ReserveName:
    """A category takes the name."""

    name: str
    category_id: str
    at: datetime


@attrs.frozen(kw_only=True)
class ReleaseName:
    """A category leaves the name."""

    category_id: str
    at: datetime


CategoryNameCommand = ReserveName | ReleaseName


def decide(command: CategoryNameCommand, state: CategoryName | None) -> Sequence[CategoryNameEvent]:
    """Return the events of a command. Raises Taken."""
    holder = None if state is None else state.category_id
    match command:
        case ReserveName():
            if holder == command.category_id:
                return []
            if holder is not None:
                raise Taken(f"there is a category {command.name!r} already, or one whose name looks like it")
            return [CategoryNameReserved(name=command.name, category_id=command.category_id, at=command.at)]
        case ReleaseName():
            return [CategoryNameReleased(category_id=command.category_id, at=command.at)] if holder == command.category_id else []


CATEGORY_NAME: Decider[CategoryName, CategoryNameCommand, CategoryNameEvent] = Decider(CATEGORY, decide, evolve, initial=None)
