"""Digests that bind commits to each other: within an aggregate by its writer, over the whole stream by each reader.

Concurrent appends to different aggregates are ordered by the server, so no writer knows its predecessor in the stream. A writer
binds a commit to the previous one of its aggregate, which it has read anyway. A reader keeps one digest of all that it has read.
Both are made of the stored bytes: upcasters work on decoded values, and a key that is destroyed changes no byte, so both outlive
a change of a type and the erasure of a person.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import Struct
from typing import Protocol

import attrs
import msgspec

TOMBSTONE = b'{"id":"lost-'
"""How each tombstone begins; the ids of other commits begin otherwise."""
LINK_BYTES = 16
"""Bytes of a commit's fingerprint that the next commit of its aggregate carries."""
_STEP = Struct(">32sQ32s").pack
_begun = sha256(b"c1").copy
"""A hash that has the version of the digest: a copy takes less time than to look the algorithm up."""


class StoredCommit(Protocol):
    """The parts of a commit on the stream."""

    @property
    def sequence(self) -> int:
        """Its stream sequence."""

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


class _Event(msgspec.Struct):
    d: CommitLost


class _Tombstone(msgspec.Struct):
    events: list[_Event]


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
    return urlsafe_b64encode(_fingerprint(subject, data)[:LINK_BYTES]).rstrip(b"=").decode()


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
    return sha256(b"log1 " + stream.encode()).digest()


def step(digest: bytes, commit: StoredCommit) -> bytes:
    """The running digest after one more commit, from the `digest` before it."""
    return sha256(_STEP(digest, commit.sequence, _fingerprint(commit.subject, commit.data))).digest()


def rolled(digest: bytes, commits: Sequence[StoredCommit], made: Iterable[bytes] | None = None) -> bytes:
    """The running digest after some more commits, which follow each other without a hole; `made` are their fingerprints."""
    for commit, fingerprint in zip(commits, fingerprints(commits) if made is None else made, strict=True):
        digest = sha256(_STEP(digest, commit.sequence, fingerprint)).digest()
    return digest
