"""Whether commits follow the commit before them of their aggregate, by the digest that each of them carries.

The guard of an append compares sequences only. If the log has lost records and has grown again, the guard of a writer that
still knows a lost record can fit by chance. Such a commit is stored, and its `prev` does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import attrs

from eventlog import Commit, UndecodableCommit
from eventlog.support.chain import links
from projections.errors import ChainBroken

KEPT = 100_000
"""Aggregates whose last digest is kept in memory, about 20 MB. For others the commit before is read from the log."""
_OUTLINE = re.compile(rb'\{"id":"(?!lost-)[^"]*","at":"[^"]*","(?:prev":"([^"]*)|events":)').match
"""The beginning of a commit as `Registry.encode` writes it: `prev` is found in a tenth of the time that decoding takes.

A tombstone does not match.
"""


@attrs.frozen
class LinkCheck:
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

    def look(self, commits: Sequence[Commit], made: Sequence[bytes]) -> LinkCheck:
        """Compare commits, which follow the last ones. Runs in any thread, one at a time.

        `made` are their fingerprints.
        """
        known, outline = self._known, _OUTLINE
        broken: dict[int, ChainBroken] = {}
        unknown: list[Commit] = []
        for commit, digest in zip(commits, links(made), strict=True):
            subject = commit.subject
            found = outline(commit.data)
            prev = found[1] if found is not None else _prev_of(commit)
            before = known.pop(subject, None)
            if prev is not None and prev != before:
                if before is None:
                    unknown.append(commit)
                else:
                    broken[commit.sequence] = ChainBroken(commit.sequence, commit.guard or 0)
            known[subject] = digest if found is not None else commit.digest.encode()
        if len(known) > KEPT:
            for subject in list(islice(known, len(known) - KEPT)):
                del known[subject]
        return LinkCheck(broken, unknown)


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
