"""Personal fields of an event, and the text that replaces them if they are sealed.

A field is declared together with the field that names the person: `notes: str = attrs.field(metadata=personal(of="created_by"))`.
Such fields never reach the broker as they are: `eventlog.privacy.encryption` seals them with a key of that person.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

T = TypeVar("T")

ERASED = "[erased]"
"""The text of a personal field if the person was erased."""
MISSING = "[key missing]"
"""The text of a personal field if the keyring lacks the person's key, and the log has no erasure of it."""
SEALED = "[sealed]"
"""The text of a personal field for a reader without a keyring."""

_OF = "eventlog.privacy.fields.of"


@attrs.frozen
class PersonalFields:
    """The personal fields of one event class, all of them texts: `person` is the one that names whose they are.

    `others` are the fields that are not personal.
    """

    person: str
    names: tuple[str, ...]
    others: tuple[str, ...]

    def of(self, event: Any) -> dict[str, str]:
        """These fields of an event."""
        return {name: getattr(event, name) for name in self.names}

    def without(self, event: T) -> T:
        """The event with these fields empty."""
        kept = {name: getattr(event, name) for name in self.others}
        return type(event)(**kept, **dict.fromkeys(self.names, ""))


def personal(*, of: str) -> Mapping[str, str]:
    """Metadata of an attrs field that is about a person; `of` is the field with the person's name, which is such a field too."""
    return {_OF: of}


def personal_fields(cls: type) -> PersonalFields | None:
    """The personal fields of an event class, None if it has none.

    Raises ValueError if they are of several persons, or where the field that names the person is not among them.
    """
    fields = {field.name: field.metadata[_OF] for field in attrs.fields(cls) if _OF in field.metadata}
    if not fields:
        return None
    persons = set(fields.values())
    if len(persons) > 1 or not persons <= set(fields):
        raise ValueError(f"{cls.__name__}: personal fields are of one person, whom one of them names")
    others = tuple(field.name for field in attrs.fields(cls) if field.name not in fields)
    return PersonalFields(persons.pop(), tuple(fields), others)


def person_of(fields: PersonalFields | None, event: Any) -> str:
    """The person of the personal fields of an event; empty if they belong to no person."""
    return "" if fields is None else plain_name(getattr(event, fields.person))


def plain_name(name: str) -> str:
    """A person's name as it is compared: without case, width and superfluous spaces (NFKC). One person, one key."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split()) if name else ""
