"""Nothing is skipped or exchanged: whether commits, and a checkpoint and a log, follow each other, by number and by digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from eventlog import Commit, Head, IncarnationChanged, LogDiverged, LogTruncated, SequenceGap
from eventlog.chain import beginning, rolled
from projections.store import Checkpoint, Mark

MARK_EVERY = 1024
"""Commits between two marks."""


@attrs.frozen(kw_only=True)
class Tip:
    """The end of what has been read of a stream: its sequence, the running digest there, the digest of the commit there.

    `digest` is None if the beginning was read by a program that kept none, `record` also at sequence 0. `marks` are those that
    were passed on the way here.
    """

    stream: str
    sequence: int
    digest: bytes | None
    record: str | None = None
    marks: Sequence[Mark] = ()

    @classmethod
    def at(cls, stream: str, sequence: int, checkpoints: Iterable[Checkpoint]) -> Tip:
        """The end at a sequence, by the checkpoints there."""
        if sequence == 0:
            return cls(stream=stream, sequence=0, digest=beginning(stream))
        here = [checkpoint for checkpoint in checkpoints if checkpoint.sequence == sequence]
        digests = [checkpoint.digest for checkpoint in here if checkpoint.digest is not None]
        records = [checkpoint.record for checkpoint in here if checkpoint.record is not None]
        digest = bytes.fromhex(digests[0]) if digests else None
        return cls(stream=stream, sequence=sequence, digest=digest, record=records[0] if records else None)

    def after(self, commits: Sequence[Commit]) -> Tip:
        """The end when some more commits have been read, which go on where this one is. Pure: runs in any thread."""
        last, digest, marks = commits[-1], self.digest, []
        if digest is not None:
            begin, border = 0, MARK_EVERY - self.sequence % MARK_EVERY
            while border <= len(commits):
                digest = rolled(digest, commits[begin:border])
                mark = commits[border - 1]
                marks.append(Mark(self.stream, mark.sequence, digest.hex(), mark.digest))
                begin, border = border, border + MARK_EVERY
            digest = rolled(digest, commits[begin:])
        return Tip(stream=self.stream, sequence=last.sequence, digest=digest, record=last.digest, marks=marks)


def check_known(commits: Sequence[Commit], tip: Tip, checkpoints: Iterable[Checkpoint], known: Mapping[int, Mark]) -> None:
    """See that commits are those that were there before, if some of them were applied already. Raises LogDiverged.

    `tip` is the end after them, `known` are the marks there are, by sequence.
    """
    first = commits[0].sequence
    for mark in tip.marks:
        if known.get(mark.sequence, mark) != mark:
            raise LogDiverged(mark.sequence, max(1, mark.sequence - MARK_EVERY + 1))
    for checkpoint in checkpoints:
        if first <= checkpoint.sequence <= tip.sequence:
            if checkpoint.record not in {None, commits[checkpoint.sequence - first].digest}:
                raise LogDiverged(checkpoint.sequence)
            if checkpoint.sequence == tip.sequence and tip.digest and checkpoint.digest not in {None, tip.digest.hex()}:
                raise LogDiverged(checkpoint.sequence, max(1, checkpoint.sequence - checkpoint.sequence % MARK_EVERY + 1))


def check_contiguous(commits: Sequence[Commit], after: int) -> None:
    """See that no sequence is missing or comes twice. Raises SequenceGap."""
    for expected, commit in enumerate(commits, start=after + 1):
        if commit.sequence != expected:
            raise SequenceGap(expected, commit.sequence)


def check_against(head: Head, projection: str, checkpoint: Checkpoint | None) -> None:
    """See that a projection can go on in a log. Raises IncarnationChanged, LogTruncated."""
    reached = 0
    if checkpoint is not None:
        reached = checkpoint.sequence
        if checkpoint.incarnation != head.incarnation:
            raise IncarnationChanged(checkpoint.incarnation, head.incarnation)
    if reached > head.last:
        raise LogTruncated(f"projection {projection!r} is at sequence {reached}, ahead of the log, which ends at {head.last}")
    if reached + 1 < head.first:
        raise LogTruncated(f"projection {projection!r} goes on with sequence {reached + 1}, the log begins at {head.first} only")
