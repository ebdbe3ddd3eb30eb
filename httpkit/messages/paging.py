"""Opaque cursors: the key of the last item of a page, as text that a client hands back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from httpkit.errors import FieldError
from httpkit.messages.fields import Rule
from httpkit.problems import Invalid

T = TypeVar("T")
R = TypeVar("R")
_TEXT = Rule()


def encode_cursor(key: tuple[Any, ...]) -> str:
    """The cursor for a key of strings, numbers and None."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode()


def decode_cursor(text: str, kind: type[T]) -> T:
    """The key in a cursor, of this type (`tuple[str, int]`). Raises Invalid for any other text."""
    try:
        padded = text + "=" * (-len(text) % 4)
        key = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=kind)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise _not_a_cursor() from None
    if any(_TEXT.broken(part) or _too_large(part) for part in cast("tuple[Any, ...]", key)):
        raise _not_a_cursor()
    return key


def page_of(rows: Sequence[R], limit: int, key: Callable[[R], tuple[Any, ...]]) -> tuple[Sequence[R], str | None]:
    """The first `limit` of rows of which one more was read, and the cursor of the next page: None if these are all.

    `key` gives the strings and numbers that a row is found by, for `decode_cursor`.
    """
    page = rows[:limit]
    return page, encode_cursor(key(page[-1])) if len(rows) > len(page) and page else None


def _too_large(part: Any) -> bool:
    """Whether a database has no such number."""
    return isinstance(part, int) and not -(2**63) <= part < 2**63


def _not_a_cursor() -> Invalid:
    """The error for a text that cannot be a cursor of the list."""
    return Invalid([FieldError("is not a cursor of this list", parameter="cursor")])
