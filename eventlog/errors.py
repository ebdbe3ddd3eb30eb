"""Everything that the event log can refuse, with a status for the edge and a text a user can act on."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar

from eventlog.support.chain import CommitLost


class EventLogError(Exception):
    """Root of the package's errors.

    `status` is the HTTP status that the edge answers with; `str(error)` is the text for a user. Some have an `exit_code` for
    commands, if the one of the status is not true of them.
    """

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class Conflict(EventLogError):
    """Another writer appended to the aggregate first; load it again and decide again."""

    status = HTTPStatus.CONFLICT


class KeyReused(EventLogError):
    """An idempotency key came back with another request than it was first used for."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class KeyTaken(EventLogError):
    """A commit with the same unique key was stored a moment ago, at `sequence`. This one was not stored."""

    status = HTTPStatus.CONFLICT

    def __init__(self, sequence: int) -> None:
        super().__init__(f"the key took effect a moment ago, at sequence {sequence}")
        self.sequence = sequence


class NotStorable(EventLogError, ValueError):
    """The program makes an event or a state that its registry does not know. The commit is not stored."""

    status = HTTPStatus.NOT_IMPLEMENTED


class TooLarge(EventLogError):
    """A commit is over the size that one message may have; large bodies belong in the blob store."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class Unavailable(EventLogError):
    """The broker cannot be reached, has no leader, or refuses writes. The commit was not stored.

    `code` is the broker's own number for its refusal, None if it did not answer.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code: int | None = None


class OutcomeUnknown(Unavailable):
    """The deadline passed, and it is not known whether the commit was stored.

    A command with an idempotency key may be repeated with it; without one it may take effect twice.
    """


class LogDamaged(EventLogError):
    """The log is not the one that a reader relied on. Readers stop with this error, and never skip."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_code = 5  # the broker is there: a repetition does not help


class SequenceGap(LogDamaged):
    """A sequence number is missing from a log in which none may be missing."""

    def __init__(self, expected: int, found: int | None) -> None:
        """`found` is the sequence that came instead, None if none came."""
        what = f"expected sequence {expected}, found {found}" if found else f"sequence {expected} cannot be read"
        super().__init__(f"the log has a hole: {what}")
        self.expected = expected
        self.found = found


class LogTruncated(LogDamaged):
    """The log begins after, or ends before, the sequence at which a reader has to resume."""


class IncarnationChanged(LogDamaged):
    """The stream was recreated; positions of the old one have no meaning in it."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"the stream was recreated: incarnation {found}, expected {expected}")
        self.expected = expected
        self.found = found


class LogDiverged(LogDamaged):
    """The log has another commit at a sequence than the one that a reader has read there: it was cut, replaced or changed."""

    def __init__(self, sequence: int, begin: int | None = None) -> None:
        """`sequence` has another commit, or, with `begin`, one from there on up to it."""
        which = f"sequence {sequence} is another commit now"
        if begin is not None and begin < sequence:
            which = f"one of the sequences {begin} to {sequence} is another commit now"
        super().__init__(f"the log is not the one that was read before: {which}")
        self.sequence = sequence
        self.begin = begin


class AggregateDamaged(EventLogError):
    """The last commit of an aggregate is there and cannot be read, or is not as a writer stored it.

    It is not absent: its commands are refused until the log is repaired, and no commit is created in its place.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_code = 5  # as of LogDamaged

    def __init__(self, subject: str, sequence: int, reason: str) -> None:
        where = f" at sequence {sequence}" if sequence else ""
        super().__init__(
            f"{subject} is damaged in the log{where}: {reason}. Its commands are refused; other aggregates are not concerned. "
            "Do not restart nats-server and do not delete the database: each may hold the only whole copy. `projections repair` "
            "shows how the log can be repaired"
        )
        self.subject = subject
        self.sequence = sequence


class UndecodableCommit(EventLogError):
    """A stored commit cannot be read: not JSON, an unknown type or version, or fields that do not fit."""


class StateLost(UndecodableCommit):
    """The state after a lost commit was asked for, and the tombstone in its place does not know it."""

    status = HTTPStatus.GONE

    def __init__(self, lost: CommitLost) -> None:
        super().__init__(
            f"the commit at sequence {lost.sequence} was lost, and with it the state after it; {lost.operator} put a tombstone "
            f"there: {lost.reason}"
        )
        self.lost = lost


class BlobMissing(EventLogError):
    """No blob is stored under that digest, or its bytes do not have that digest."""

    status = HTTPStatus.NOT_FOUND
