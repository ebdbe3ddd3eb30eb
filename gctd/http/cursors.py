"""Opaque cursors for lists: the key of the last item, in an encoding that promises nothing."""

from __future__ import annotations

import base64
import binascii

import msgspec


def encode_cursor(*key: str) -> str:
    """The cursor that goes on after the item with this key."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[str, str]:
    """The key in a cursor of two parts. Raises ValueError where it is none of ours."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=tuple[str, str])
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError("is not a cursor of this list") from error
