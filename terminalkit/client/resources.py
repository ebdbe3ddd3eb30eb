"""Answers of an API: the fields that the client uses, and the whole document.

Each value keeps the JSON object that it was read from as `document`, so that `--json` shows all members, also members that this
version does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from terminalkit.client.errors import ClientError


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of the API; `document` is the object itself, as decoded.

    `known_at` is the position of the log for which it is true. None: the server does not name it.
    """

    document: Mapping[str, Any] = {}
    known_at: int | None = None


R = TypeVar("R", bound=Resource)


def parse(type_: type[R], document: object, *, known_at: int | None = None) -> R:
    """Return the value of a decoded JSON object. Raises ClientError if it does not fit."""
    if not isinstance(document, dict):
        raise ClientError(f"the server answered with {type(document).__name__} instead of an object")
    try:
        return msgspec.convert({**document, "document": document, "known_at": known_at}, type_)
    except msgspec.ValidationError as error:
        raise ClientError(f"the server's answer is not one that this version understands: {error}") from error


def parse_list(type_: type[R], documents: object, *, known_at: int | None = None) -> list[R]:
    """Return the values of a decoded JSON array of objects. Raises ClientError if one does not fit."""
    if not isinstance(documents, list):
        raise ClientError(f"the server answered with {type(documents).__name__} instead of an array")
    return [parse(type_, document, known_at=known_at) for document in documents]
