"""No commit is skipped or exchanged: commits, and a checkpoint and a log, follow each other by number and running digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from eventlog import (
    Commit,
    EventLog,
    EventLogError,
    Head,
    IncarnationChanged,
    LogDamaged,
    LogDiverged,
    LogTruncated,
)
from eventlog.support.chain import beginning, digest_from, rolled, text_of
from projections.errors import ProjectionError, StoreDamaged
from projections.store import Checkpoint, Mark, Reader

MARK_EVERY = 1024
"""Commits between two marks."""
_KEEP = (
    "Nothing further is applied, and writes are refused. Keep the database: it may hold the only whole copy. Restore the stream "
    "from a backup or a replica. If the log was replaced on purpose, set the database aside and begin with an empty one: the "
    "read model is rebuilt from the log"
)
"""The advice to the operator of a log that is not what it was."""


@attrs.frozen(kw_only=True)
class Tip:
    """The last commit that has been read of a stream: its sequence, the running digest there, and its digest.

    `record` is None at sequence 0. `marks` are the marks that were passed on the way here.
    """

    stream: str
    sequence: int
    digest: bytes
    record: str | None = None
    marks: Sequence[Mark] = ()

    @classmethod
    def at(cls, stream: str, sequence: int, checkpoints: Iterable[Checkpoint]) -> Tip:
        """The end at the sequence of some checkpoints. Raises StoreDamaged if these contradict each other, or have no digest."""
        if sequence == 0:
            return cls(stream=stream, sequence=0, digest=beginning(stream))
        digests = {(checkpoint.digest, checkpoint.record) for checkpoint in checkpoints if checkpoint.sequence == sequence}
        if len(digests) > 1:
            raise StoreDamaged(f"the checkpoints at sequence {sequence} have different digests: the tables are damaged")
        ((digest, record),) = digests
        try:
            running = digest_from(digest or "", sequence)
        except ValueError as error:
            raise StoreDamaged(f"the checkpoints at sequence {sequence} have no digest that can be read: {digest!r}") from error
        return cls(stream=stream, sequence=sequence, digest=running, record=record)

    def after(self, commits: Sequence[Commit], hashes: Sequence[bytes]) -> Tip:
        """Return the tip after some more commits, which follow this one. Pure: runs in any thread.

        `hashes` are their fingerprints.
        """
        last, digest, marks = commits[-1], self.digest, []
        begin, border = 0, MARK_EVERY - self.sequence % MARK_EVERY
        while border <= len(commits):
            digest = rolled(digest, hashes[begin:border])
            mark = commits[border - 1]
            marks.append(Mark(self.stream, mark.sequence, text_of(digest), mark.digest))
            begin, border = border, border + MARK_EVERY
        digest = rolled(digest, hashes[begin:])
        return Tip(stream=self.stream, sequence=last.sequence, digest=digest, record=last.digest, marks=marks)


def check_known(commits: Sequence[Commit], tip: Tip, checkpoints: Iterable[Checkpoint], known: Mapping[int, Mark]) -> None:
    """Check that commits that some projection has already applied are unchanged. Raises LogDiverged.

    `tip` is the end after them, `known` are the marks there are, by sequence.
    """
    first = commits[0].sequence
    for mark in tip.marks:
        if known.get(mark.sequence, mark) != mark:
            raise LogDiverged(mark.sequence, max(1, mark.sequence - MARK_EVERY + 1))
    for checkpoint in checkpoints:
        inside = first <= checkpoint.sequence <= tip.sequence
        if inside and checkpoint.record != commits[checkpoint.sequence - first].digest:
            raise LogDiverged(checkpoint.sequence)


def check_against(head: Head, projection: str, checkpoint: Checkpoint | None) -> None:
    """Check that a projection can continue in a log. Raises IncarnationChanged, LogTruncated."""
    reached = 0
    if checkpoint is not None:
        reached = checkpoint.sequence
        if checkpoint.incarnation != head.incarnation:
            raise IncarnationChanged(checkpoint.incarnation, head.incarnation)
    if reached > head.last:
        raise LogTruncated(f"projection {projection!r} is at sequence {reached}, ahead of the log, which ends at {head.last}")
    if reached + 1 < head.first:
        raise LogTruncated(f"projection {projection!r} needs sequence {reached + 1}, but the log begins at {head.first}")


async def reason_of_stop(error: Exception, event_log: EventLog, store: Reader, stream: str) -> str:
    """The reason for a projector that stops for an error, with the advice for a log that is not what it was."""
    if not isinstance(error, LogDamaged):
        return str(error) if isinstance(error, ProjectionError) else f"{type(error).__name__}: {error}"
    where = ""
    if isinstance(error, LogDiverged) and error.begin is None:
        where = await _first_difference(event_log, store, stream, error)
    return f"stream {stream}: {error}{where and f'; {where}'}. {_KEEP}"


async def _first_difference(event_log: EventLog, store: Reader, stream: str, diverged: LogDiverged) -> str:
    """The sequences between which the first commit lies that differs, in words; an empty text if that cannot be found.

    A log that was cut and has grown again has other commits at all marks above the cut, so the marks are halved.
    """
    try:
        marks = [mark for mark in await store.marks(stream) if mark.sequence < diverged.sequence]
        low, high = 0, len(marks)
        while low < high:
            middle = (low + high) // 2
            commit = await event_log.at(marks[middle].sequence)
            if commit is not None and commit.digest == marks[middle].record:
                low = middle + 1
            else:
                high = middle
    except (EventLogError, ProjectionError):
        return ""
    begin = marks[low - 1].sequence + 1 if low else 1
    end = marks[high].sequence if high < len(marks) else diverged.sequence
    return f"the first difference is between sequence {begin} and {end}"
