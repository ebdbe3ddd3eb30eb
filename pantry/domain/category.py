"""The aggregate of a category: a description and a name, which `pantry.domain.category_name` keeps unique."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from eventlog import Decider
from pantry.domain.errors import BadInput, Changed, NotFound, Taken
from pantry.domain.naming import look
from pantry.domain.registry import REGISTRY

CATEGORY_CATEGORY = "pantry.category"
NAME_LENGTH = 100


@REGISTRY.event("CategoryCreated")
@attrs.frozen(kw_only=True)
class CategoryCreated:
    """There is a new category."""

    id: str
    name: str
    description: str
    at: datetime


@REGISTRY.event("CategoryEdited")
@attrs.frozen(kw_only=True)
class CategoryEdited:
    """Its name or description is another."""

    name: str
    description: str
    at: datetime


CategoryEvent = CategoryCreated | CategoryEdited


@REGISTRY.state(CATEGORY_CATEGORY)
@attrs.frozen(kw_only=True)
class Category:
    """A category. `version` counts its events."""

    id: str
    name: str
    description: str
    created_at: datetime
    updated_at: datetime
    version: int = 1


def evolve(state: Category | None, event: CategoryEvent) -> Category:
    """The category after an event."""
    if isinstance(event, CategoryCreated):
        return Category(id=event.id, name=event.name, description=event.description, created_at=event.at, updated_at=event.at)
    assert state is not None, "a category begins with CategoryCreated"
    return attrs.evolve(state, name=event.name, description=event.description, updated_at=event.at, version=state.version + 1)


@attrs.frozen(kw_only=True)
class CreateCategory:
    """A new category."""

    id: str
    name: str
    description: str
    at: datetime


@attrs.frozen(kw_only=True)
class EditCategory:
    """Replace name and description; `version` is the one that the caller has read, None for any."""

    name: str
    description: str
    at: datetime
    version: int | None = None


CategoryCommand = CreateCategory | EditCategory


def decide(command: CategoryCommand, state: Category | None) -> Sequence[CategoryEvent]:
    """Return the events of a command. Raises BadInput, NotFound, Taken, Changed."""
    if not look(command.name):
        raise BadInput("name", "category name cannot be empty")
    if len(command.name) > NAME_LENGTH:
        raise BadInput("name", f"must have at most {NAME_LENGTH} characters")
    match command:
        case CreateCategory():
            if state is not None:
                raise Taken(f"there is a category {command.id} already")
            return [CategoryCreated(id=command.id, name=command.name, description=command.description, at=command.at)]
        case EditCategory():
            if state is None:
                raise NotFound("there is no such category")
            if command.version is not None and command.version != state.version:
                raise Changed(f"category {state.id} is in version {state.version}, not {command.version}")
            if (command.name, command.description) == (state.name, state.description):
                return []
            return [CategoryEdited(name=command.name, description=command.description, at=command.at)]


CATEGORY: Decider[Category, CategoryCommand, CategoryEvent] = Decider(CATEGORY_CATEGORY, decide, evolve, initial=None)
