"""The aggregate of a person who was erased: all that is known of them is the id of the key that they had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from eventlog import Decider
from pantry.domain.registry import REGISTRY

CATEGORY = "pantry.person"


@REGISTRY.event("PersonErased")
@attrs.frozen(kw_only=True)
class PersonErased:
    """Data that was sealed with this key can never be opened: the key is destroyed in every place, also if it comes back."""

    key: str
    at: datetime


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Person:
    """A person who has been erased; there are no others."""

    key: str
    erased_at: datetime


def evolve(state: Person | None, event: PersonErased) -> Person:  # noqa: ARG001 - the shape of every aggregate
    """The person after an event."""
    return Person(key=event.key, erased_at=event.at)


@attrs.frozen(kw_only=True)
class ErasePerson:
    """Erase the person with this key."""

    key: str
    at: datetime


def decide(command: ErasePerson, state: Person | None) -> Sequence[PersonErased]:
    """Return the events of a command: none if it has happened before."""
    return [] if state is not None else [PersonErased(key=command.key, at=command.at)]


PERSON: Decider[Person, ErasePerson, PersonErased] = Decider(CATEGORY, decide, evolve, initial=None)
