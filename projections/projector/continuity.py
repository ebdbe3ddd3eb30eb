"""Nothing is skipped: whether commits, and a checkpoint and a log, follow each other without a hole."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog import Commit, Head, IncarnationChanged, LogTruncated, SequenceGap
from projections.store import Checkpoint


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
