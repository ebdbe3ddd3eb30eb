"""Everything that the event log can refuse, with a status for the edge and a text a user can act on."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar


class EventLogError(Exception):
    """Root of the package's errors.

    `status` is the HTTP status that the edge answers with; `str(error)` is the text for a user.
    """

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class Conflict(EventLogError):
    """Another writer appended to the aggregate first; load it again and decide again."""

    status = HTTPStatus.CONFLICT


class KeyReused(EventLogError):
    """An idempotency key came back with another request than it was first used for."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class TooLarge(EventLogError):
    """A commit is over the size that one message may have; large bodies belong in the blob store."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class Unavailable(EventLogError):
    """The broker cannot be reached, has no leader, or refuses writes; nothing was stored."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class OutcomeUnknown(Unavailable):
    """The broker did not say whether the commit was stored before the deadline.

    Repeating the command with the same idempotency key is safe.
    """


class LogDamaged(EventLogError):
    """The log is not what a reader relied on; readers stop and say so, they never skip."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class SequenceGap(LogDamaged):
    """A sequence number is missing from a log in which none may be missing."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"the log has a hole: expected sequence {expected}, found {found}")
        self.expected = expected
        self.found = found


class LogTruncated(LogDamaged):
    """The log begins after, or ends before, the sequence that a reader has to go on from."""


class IncarnationChanged(LogDamaged):
    """The stream was created anew; positions of the old one mean nothing in it."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"the stream was created anew: incarnation {found}, expected {expected}")
        self.expected = expected
        self.found = found


class UndecodableCommit(EventLogError):
    """A stored commit cannot be read: not JSON, an unknown type or version, or fields that do not fit."""


class BlobMissing(EventLogError):
    """No blob is stored under that digest, or its bytes do not have that digest."""

    status = HTTPStatus.NOT_FOUND
