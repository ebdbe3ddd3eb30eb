"""Whether commits follow the commit before them of their aggregate, by the digest that each of them carries.

The guard of an append compares sequences only. If the log has lost records and has grown again, the guard of a writer that
still knows a lost record can fit by chance. Such a commit is stored, and its `prev` does not fit.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Sequence

import attrs

from eventlog import Commit, UndecodableCommit
from eventlog.support.chain import LINK_BYTES, TOMBSTONE
from projections.errors import ChainBroken

KEPT = 100_000
"""Aggregates whose last digest is kept in memory, about 20 MB. For others the commit before is read from the log."""
_OUTLINE = re.compile(rb'\{"id":"[^"]*","at":"[^"]*","(?:prev":"([^"]*)|events":)').match
"""The beginning of a commit as `Registry.encode` writes it: `prev` is found in a tenth of the time that decoding takes."""
_TO_URL = bytes.maketrans(b"+/", b"-_")


@attrs.frozen
class Looked:
    """The result of a look at commits: the reason for each that does not follow, and those whose predecessor is not known."""

    broken: dict[int, ChainBroken]
    unknown: Sequence[Commit]


class AggregateLinks:
    """The digest of the last commit of each aggregate that was read lately."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def begin(self) -> None:
        """Forget all: reading begins at another place."""
        self._known.clear()

    def look(self, commits: Sequence[Commit], made: Sequence[bytes]) -> Looked:
        """Compare commits, which follow the last ones. Runs in any thread, one at a time.

        `made` are their fingerprints.
        """
        known, outline = self._known, _OUTLINE
        unknown: list[Commit] = []
        compared: list[Commit] = []
        prevs: list[bytes] = []
        befores: list[bytes] = []
        for commit, fingerprint in zip(commits, made, strict=True):
            subject, data = commit.subject, commit.data
            found = outline(data)
            prev = found[1] if found is not None else _prev_of(commit)
            before = known.pop(subject, None)
            if prev is not None:
                if before is None:
                    unknown.append(commit)
                else:
                    compared.append(commit)
                    prevs.append(prev)
                    befores.append(before)
            known[subject] = fingerprint[:LINK_BYTES] if not data.startswith(TOMBSTONE) else _digest_of(commit)
        while len(known) > KEPT:
            del known[next(iter(known))]
        broken: dict[int, ChainBroken] = {}
        if _texts(befores) != _padded(prevs):  # one comparison of all costs a quarter of one for each
            for commit, prev, before in zip(compared, prevs, befores, strict=True):
                if _texts([before]) != _padded([prev]):
                    broken[commit.sequence] = ChainBroken(commit.sequence, commit.guard or 0)
        return Looked(broken, unknown)


def follows(commit: Commit, before: Commit | None) -> bool:
    """Whether a commit follows the one at the sequence of its guard; True if it cannot be known.

    `before` is None if that record cannot be read. Then it is damaged itself, which a pass of the scrubber names.
    """
    prev = _prev_of(commit)
    if prev is None or commit.guard is None:
        return True
    if commit.guard == 0:
        return False
    return before is None or (before.subject == commit.subject and before.digest.encode() == prev)


def _prev_of(commit: Commit) -> bytes | None:
    """The digest of the previous commit; None if there is none, or if the commit cannot be decoded."""
    found = _OUTLINE(commit.data)
    if found is not None:
        return found[1]
    try:
        return None if commit.prev is None else commit.prev.encode()
    except UndecodableCommit:
        return None


def _digest_of(commit: Commit) -> bytes:
    """`Commit.digest` before it is made a text."""
    return urlsafe_b64decode(commit.digest + "==")


def _texts(digests: Sequence[bytes]) -> bytes:
    """The texts of digests in a row, each with two zero bytes after it: 24 characters."""
    return b2a_base64(b"\0\0".join((*digests, b"")), newline=False).translate(_TO_URL)


def _padded(texts: Sequence[bytes]) -> bytes:
    """The same of digests as commits carry them, of 22 characters."""
    return b"AA".join((*texts, b""))


__all__ = ["KEPT", "AggregateLinks", "Looked", "follows"]
