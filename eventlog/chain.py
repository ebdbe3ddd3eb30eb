"""Digests that bind commits to each other: within an aggregate by its writer, over the whole stream by each reader.

Concurrent appends to different aggregates are ordered by the server, so no writer knows its predecessor in the stream. A writer
binds a commit to the previous one of its aggregate, which it has read anyway. A reader keeps one digest of all that it has read.
Both are made of the stored bytes: upcasters work on decoded values, and a key that is destroyed changes no byte, so both outlive
a change of a type and the erasure of a person.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Protocol

_LINK = b"c1"
_LINK_BYTES = 16
_STEP = Struct(">32sQHI").pack


class Stored(Protocol):
    """What a commit is made of on the stream."""

    @property
    def sequence(self) -> int:
        """Its stream sequence."""

    @property
    def subject(self) -> str:
        """The subject of its aggregate."""

    @property
    def data(self) -> bytes:
        """Its payload as it is stored."""


def link(subject: str, data: bytes) -> str:
    """The digest of one commit, 22 characters: the next commit of the aggregate carries it as `prev`."""
    digest = sha256(b"%b%b\0%b" % (_LINK, subject.encode(), data)).digest()
    return urlsafe_b64encode(digest[:_LINK_BYTES]).rstrip(b"=").decode()


def beginning(stream: str) -> bytes:
    """The running digest of a stream before its first commit.

    It depends on the name alone and not on the incarnation: a restored stream can be compared with its original.
    """
    return sha256(b"log1 " + stream.encode()).digest()


def step(digest: bytes, commit: Stored) -> bytes:
    """The running digest after one more commit, from the `digest` before it."""
    subject, data = commit.subject.encode(), commit.data
    return sha256(_STEP(digest, commit.sequence, len(subject), len(data)) + subject + data).digest()


def rolled(digest: bytes, commits: Iterable[Stored]) -> bytes:
    """The running digest after some more commits, which follow each other without a hole."""
    for commit in commits:
        subject, data = commit.subject.encode(), commit.data
        digest = sha256(_STEP(digest, commit.sequence, len(subject), len(data)) + subject + data).digest()
    return digest
