"""A commit as it is on the wire: the members of its JSON, and the headers that its guard travels in."""

from __future__ import annotations

from datetime import datetime

import msgspec

GUARD = "Nats-Expected-Last-Subject-Sequence"
"""The header that the guard of an append travels in. The server keeps it with the message."""
FOLLOWS = "Commit-Follows"
"""The header of a commit that was stored in one batch with the previous commit of its aggregate, right after it.

This place is its guard: no other commit can be between them. The server takes no other guard there, as it knows no sequence yet.
"""
_EVENT = {"type": "t", "version": "v", "data": "d", "sealed": "p"}
_GUARD, _FOLLOWS = (f"\r\n{name}:".encode() for name in (GUARD, FOLLOWS))


def has_guard(headers: bytes | None) -> bool:
    """Whether a message with these headers was appended under a guard."""
    return headers is not None and (_GUARD in headers or _FOLLOWS in headers)


def guard_at(sequence: int, headers: bytes | None) -> int | None:
    """The guard of the message at a sequence: the sequence that the aggregate had before, 0 for none; None: no guard."""
    headers = headers or b""
    _, found, rest = headers.partition(_GUARD)
    if not found and _FOLLOWS in headers:
        return sequence - 1
    text = rest.partition(b"\r\n")[0].strip()
    return int(text) if found and text.isdigit() else None


class EventBody(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, rename=_EVENT):
    """An event on the wire; `sealed` are its personal fields."""

    type: str
    data: msgspec.Raw
    version: int = 1
    key: str | None = None
    fingerprint: str | None = None
    correlation: str | None = None
    causation: str | None = None
    sealed: str | None = None
    actor: str | None = None


class StateBody(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, rename={"version": "v", "data": "d"}):
    """The state of an aggregate on the wire; its type is the category of the aggregate."""

    data: msgspec.Raw
    version: int = 1


class CommitBody(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """A commit on the wire; `prev` is the digest of the aggregate's previous commit."""

    id: str
    at: datetime
    prev: str | None = None
    events: list[EventBody]
    state: StateBody
