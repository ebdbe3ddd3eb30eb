"""What an API answers with: the fields that are relied on, and the whole document beside them.

Each value keeps the JSON object that it was read from as `document`, so that `--json` shows all that the server said, also
what this version does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from terminalkit.client.errors import ClientError


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of the API; `document` is the object itself, as decoded."""

    document: Mapping[str, Any] = {}


R = TypeVar("R", bound=Resource)


def parse(type_: type[R], document: object) -> R:
    """The value that a decoded JSON object stands for. Raises ClientError where it does not fit."""
    if not isinstance(document, dict):
        raise ClientError(f"the server answered with {type(document).__name__} where an object belongs")
    try:
        return msgspec.convert({**document, "document": document}, type_)
    except msgspec.ValidationError as error:
        raise ClientError(f"the server's answer is not one that this version understands: {error}") from error


def parse_list(type_: type[R], documents: object) -> list[R]:
    """The values that a decoded JSON array of objects stands for. Raises ClientError where one does not fit."""
    if not isinstance(documents, list):
        raise ClientError(f"the server answered with {type(documents).__name__} where an array belongs")
    return [parse(type_, document) for document in documents]
