"""Opaque cursors: the key of the last item of a page, as text that a client hands back."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar, cast

import msgspec

from httpkit.errors import FieldError
from httpkit.messages.fields import Rule
from httpkit.problems import Invalid

T = TypeVar("T")
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
    if any(_TEXT.broken(part) for part in cast("tuple[Any, ...]", key)):
        raise _not_a_cursor()
    return key


def _not_a_cursor() -> Invalid:
    return Invalid([FieldError("is not a cursor of this list", parameter="cursor")])
