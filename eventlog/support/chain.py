"""A commit as it is on the wire, and the digests that bind each commit to the one before it."""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from enum import Enum
from hashlib import sha256
from itertools import islice
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


def links(hashes: Sequence[bytes]) -> Sequence[bytes]:
    """The digests (`link`) of commits whose fingerprints are `hashes`: of many at once it takes a tenth of the time of each."""
    count = len(hashes)
    padded = Struct(f"{LINK_BYTES}s2x" * count).pack(*hashes)  # two more bytes: no character has bits of two
    return Struct("22s2x" * count).unpack(urlsafe_b64encode(padded))


class LinkedCommit(StoredCommit, Protocol):
    """A commit at its place in the log."""

    @property
    def sequence(self) -> int:
        """Its sequence."""

    @property
    def headers(self) -> bytes | None:
        """Its headers as they are stored."""


class Break(Enum):
    """The ways in which a commit does not follow the one before it of its aggregate."""

    STRAY = "it was stored without a guard, past the event log"
    UNDECODABLE = "it cannot be decoded"
    UNBOUND = "it does not name the commit before it of its aggregate, at sequence {guard}"
    NOT_FIRST = "it was stored as the first commit of its aggregate, and it is not"
    GUARD = "its guard is not the sequence of the commit before it of its aggregate"
    DIGEST = "it was decided on another commit than the one at sequence {guard}"
    UNREAD = "the commit before it of its aggregate, at sequence {guard}, was not read"


@attrs.frozen
class LinkFault:
    """A commit that does not follow the one before it of its aggregate.

    `prev` is the digest of the commit that it was decided on, `guard` the sequence of that one, None if they are not known.
    `error` is the reason why it cannot be decoded.
    """

    sequence: int
    subject: str
    kind: Break
    guard: int | None
    prev: str | None
    error: msgspec.MsgspecError | None = None

    @property
    def problem(self) -> str:
        """The reason in words."""
        problem = self.kind.value.format(guard=self.guard)
        return problem if self.error is None else f"{problem}: {self.error}"


@attrs.frozen
class LinkCheck:
    """The result for commits: the faults by sequence, and the commits whose predecessor was not read."""

    faults: dict[int, LinkFault]
    unread: Sequence[LinkedCommit]


Link = tuple[int, bytes]
"""The sequence and the digest of the last commit of an aggregate."""
KEPT = 100_000
"""Aggregates whose last digest is kept in memory, about 20 MB. For others the commit before is read from the log."""
_OUTLINE = re.compile(rb'\{"id":"(?!lost-)[^"]*","at":"[^"]*","(?:prev":"([^"]*)|events":)').match
"""The beginning of a commit as `Registry.encode` writes it: `prev` is found in a tenth of the time that decoding takes.

A tombstone does not match.
"""
_body = msgspec.json.Decoder(CommitBody)
_TOGETHER_READ = 64
"""Commits whose predecessor is read from the log at the same time."""


class LinkChecker:
    """Whether each commit follows the one before it of its aggregate. It is given the commits of a log in their order.

    The last digests of `most` aggregates are kept.
    """

    def __init__(self, most: float = KEPT) -> None:
        self._last: dict[str, Link] = {}
        self._most = most

    def begin(self) -> None:
        """Forget all: reading begins at another place."""
        self._last.clear()

    def look(self, commits: Sequence[LinkedCommit], hashes: Sequence[bytes]) -> LinkCheck:
        """Compare commits, which follow the last ones. Runs in any thread, one at a time.

        `hashes` are their fingerprints. A commit is compared with the one before it, also if that one does not follow.
        """
        last, outline = self._last, _OUTLINE
        faults: dict[int, LinkFault] = {}
        unread: list[LinkedCommit] = []
        for commit, fingerprint in zip(commits, links(hashes), strict=True):
            subject = commit.subject
            before = last.pop(subject, None)
            begin = outline(commit.data)
            guard = guard_at(commit.sequence, commit.headers)
            last[subject] = commit.sequence, fingerprint if begin is not None else digest_of(subject, commit.data).encode()
            if before is not None and begin is not None and before[0] == guard and before[1] == begin[1]:
                continue
            if (fault := link_fault(commit, before)) is not None:
                if fault.kind is Break.UNREAD:
                    unread.append(commit)
                else:
                    faults[commit.sequence] = fault
        if len(last) > self._most:
            for subject in list(islice(last, int(len(last) - self._most))):
                del last[subject]
        return LinkCheck(faults, unread)


def link_fault(commit: LinkedCommit, before: Link | None) -> LinkFault | None:
    """Return why a commit does not follow `before`, the last commit of its aggregate that was read; None if it does."""
    guard, prev, kind, undecodable = guard_at(commit.sequence, commit.headers), None, None, None
    try:
        prev = _prev_of(commit.data)
    except msgspec.MsgspecError as error:
        kind, undecodable = Break.UNDECODABLE, error
    if guard is None:
        kind = Break.STRAY
    elif kind is None:
        kind = _break(guard, prev, before)
    if kind is None:
        return None
    return LinkFault(commit.sequence, commit.subject, kind, guard, None if prev is None else prev.decode(), undecodable)


def _break(guard: int, prev: bytes | None, before: Link | None) -> Break | None:
    if guard == 0:
        return None if prev is None and before is None else Break.NOT_FIRST
    if prev is None:
        return Break.UNBOUND
    if before is None or before[0] < guard:
        return Break.UNREAD
    if before[0] > guard:
        return Break.GUARD
    return None if before[1] == prev else Break.DIGEST


def _prev_of(data: bytes) -> bytes | None:
    begin = _OUTLINE(data)
    if begin is not None:
        prev: bytes | None = begin[1]
        return prev
    named = _body.decode(data).prev
    return None if named is None else named.encode()


ReadAt = Callable[[int], Awaitable[StoredCommit | None]]
"""Reads the commit at a sequence; None if it cannot be read."""


async def read_link_fault(commit: LinkedCommit, before: Link | None, at: ReadAt) -> LinkFault | None:
    """As `link_fault`, with a read of the commit at the guard if it has to be. UNREAD is left if it cannot be read."""
    fault = link_fault(commit, before)
    if fault is not None and fault.kind is Break.UNREAD and (guard := fault.guard) is not None:
        record = await at(guard)
        if record is not None and record.subject != commit.subject:
            return attrs.evolve(fault, kind=Break.GUARD)
        if record is not None:
            return link_fault(commit, (guard, digest_of(record.subject, record.data).encode()))
    return fault


async def link_faults(check: LinkCheck, at: ReadAt) -> dict[int, LinkFault]:
    """Return the commits that do not follow, by sequence: the commits before the `unread` ones are read.

    A commit whose predecessor cannot be read is not named: that one is damaged itself.
    """
    faults = dict(check.faults)
    for begin in range(0, len(check.unread), _TOGETHER_READ):
        part = check.unread[begin : begin + _TOGETHER_READ]
        for fault in await asyncio.gather(*(read_link_fault(commit, None, at) for commit in part)):
            if fault is not None and fault.kind is not Break.UNREAD:
                faults[fault.sequence] = fault
    return faults


def beginning(stream: str) -> bytes:
    """The running digest of a stream before its first commit.

    It depends on the name alone and not on the incarnation: a restored stream can be compared with its original.
    """
    return sha256(b"log2 " + stream.encode()).digest()


def rolled(digest: bytes, hashes: Sequence[bytes]) -> bytes:
    """The running digest after some more commits, which follow each other without a hole. `hashes` are their fingerprints.

    It is a SHA-256, and after it the fingerprints of the at most 7 commits since then. Each eighth commit closes a group: a new
    SHA-256 is made of all that. So the digest after a sequence does not depend on the batches in which the commits were read.
    """
    folded, waiting = digest[:_FINGERPRINT], digest[_FINGERPRINT:] + b"".join(hashes)
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
