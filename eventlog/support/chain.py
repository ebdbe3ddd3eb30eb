"""A commit as it is on the wire, and the digests that bind each commit to the one before it."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from struct import Struct
from typing import Protocol

import attrs
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


TOMBSTONE = b'{"id":"lost-'
"""How each tombstone begins; the ids of other commits begin otherwise."""
LINK_BYTES = 16
"""Bytes of a commit's fingerprint that the next commit of its aggregate carries."""
_FINGERPRINT = sha256().digest_size
_TOGETHER = 8 * _FINGERPRINT
"""Bytes of the fingerprints that are hashed at once. A call of SHA-256 costs about the time for 300 bytes."""
_begun = sha256(b"c1").copy
"""A hash that has the version of the digest: a copy takes less time than to look the algorithm up."""


class StoredCommit(Protocol):
    """The parts of a commit on the stream."""

    @property
    def subject(self) -> str:
        """The subject of its aggregate."""

    @property
    def data(self) -> bytes:
        """Its payload as it is stored."""


@attrs.frozen(kw_only=True)
class CommitLost:
    """The event of a tombstone: the commit at `sequence` is lost, and `operator` has replaced it for a `reason`.

    `replaces` is the digest of the lost commit, if a later commit of its aggregate names it. Then later states contain the effect
    of the lost commit. Otherwise its effect is gone.
    """

    sequence: int
    operator: str
    reason: str
    replaces: str | None = None


class _ChainedEvent(msgspec.Struct):
    d: CommitLost


class _Tombstone(msgspec.Struct):
    events: list[_ChainedEvent]


_tombstone = msgspec.json.Decoder(_Tombstone)


def lost(data: bytes) -> CommitLost | None:
    """The event of a tombstone; None for every other commit."""
    if not data.startswith(TOMBSTONE):
        return None
    try:
        return _tombstone.decode(data).events[0].d
    except (msgspec.DecodeError, IndexError):
        return None


def digest_of(subject: str, data: bytes) -> str:
    """The digest that the next commit of the aggregate carries as `prev`; a tombstone has the lost commit's one, if known."""
    found = lost(data)
    return link(subject, data) if found is None or found.replaces is None else found.replaces


def link(subject: str, data: bytes) -> str:
    """The digest of one commit, 22 characters: the next commit of the aggregate carries it as `prev`."""
    return text_of(_fingerprint(subject, data)[:LINK_BYTES])


def _fingerprint(subject: str, data: bytes) -> bytes:
    found = _begun()
    found.update(f"{subject}\0".encode())
    found.update(data)
    return found.digest()


def fingerprints(commits: Iterable[StoredCommit]) -> list[bytes]:
    """The SHA-256 of the bytes of each commit, which both chains are made of: long to make, so it is made once for both."""
    return [_fingerprint(commit.subject, commit.data) for commit in commits]


def links(made: Sequence[bytes]) -> Sequence[bytes]:
    """The digests (`link`) of commits whose fingerprints are `made`: of many at once it takes a tenth of the time of each."""
    count = len(made)
    padded = Struct(f"{LINK_BYTES}s2x" * count).pack(*made)  # two more bytes: no character has bits of two
    return Struct("22s2x" * count).unpack(urlsafe_b64encode(padded))


def beginning(stream: str) -> bytes:
    """The running digest of a stream before its first commit.

    It depends on the name alone and not on the incarnation: a restored stream can be compared with its original.
    """
    return sha256(b"log2 " + stream.encode()).digest()


def rolled(digest: bytes, made: Sequence[bytes]) -> bytes:
    """The running digest after some more commits, which follow each other without a hole. `made` are their fingerprints.

    It is a SHA-256, and after it the fingerprints of the at most 7 commits since then. Each eighth commit closes a group: a new
    SHA-256 is made of all that. So the digest after a sequence does not depend on the batches in which the commits were read.
    """
    folded, waiting = digest[:_FINGERPRINT], digest[_FINGERPRINT:] + b"".join(made)
    whole = len(waiting) - len(waiting) % _TOGETHER
    for begin in range(0, whole, _TOGETHER):
        folded = sha256(folded + waiting[begin : begin + _TOGETHER]).digest()
    return folded + waiting[whole:]


def text_of(digest: bytes) -> str:
    """A digest as it is stored: base64 without padding. A running digest has 43 to 342 characters."""
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def digest_from(text: str, sequence: int) -> bytes:
    """The running digest after a sequence that `text_of` made a text of. Raises ValueError if it made none such."""
    digest = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if text_of(digest) != text or len(digest) != _FINGERPRINT + sequence * _FINGERPRINT % _TOGETHER:
        raise ValueError(f"not a running digest after sequence {sequence}: {text!r}")
    return digest
