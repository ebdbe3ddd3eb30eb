"""Everything that the read side can refuse."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar


class ProjectionError(Exception):
    """Root of the package's errors. `status` is the HTTP status that the edge answers with."""

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class StoreUnavailable(ProjectionError):
    """The database cannot be opened, read or written now. The operation had no effect."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class StoreInUse(StoreUnavailable):
    """Another process brings this database up to date; two must not."""


class StoreDamaged(ProjectionError):
    """The database is not a sound database of this program."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_code = 5  # the database is there: a repetition does not help


class StoreForeign(StoreDamaged):
    """The database belongs to another program: it is left alone."""

    status = HTTPStatus.CONFLICT


class RowRefused(ProjectionError):
    """The database refuses a row for its values (a constraint, a value that it cannot hold): a retry does not help."""


class ArgumentRefused(ProjectionError):
    """A query was asked with a value that cannot be one: a text if there must be a time."""

    status = HTTPStatus.BAD_REQUEST


class NotLeading(ProjectionError):
    """Another process brings this database up to date now; this one may look, and may ask again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Behind(ProjectionError):
    """The read model has not reached the asked sequence within the time allowed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class ProjectorStopped(ProjectionError):
    """The projector stopped because it would skip or repeat events otherwise; the text has the reason."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_code = 5  # as of StoreDamaged


class CheckpointMoved(ProjectorStopped):
    """Another projector advanced the checkpoint: this one must stop."""


class Stray(ProjectionError):
    """A message was stored past the event log: without a guard. It is not applied; its aggregate is parked."""

    status = HTTPStatus.CONFLICT

    def __init__(self, sequence: int) -> None:
        super().__init__(
            f"sequence {sequence} was published without a guard, past the event log: find out which client may publish to the "
            "subjects of this stream"
        )


class ChainBroken(ProjectionError):
    """A commit does not follow the commit before it of its aggregate. It is not applied; its aggregate is parked."""

    status = HTTPStatus.CONFLICT

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(
            f"sequence {sequence} does not follow the commit before it: {problem}. The log has lost or changed a record that the "
            "writer knew. `projections repair` shows how the log can be repaired"
        )


class AggregateParked(ProjectionError):
    """A sequence was asked for whose commit is not in the tables, since its aggregate is parked: waiting is of no use."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class NotParked(ProjectionError):
    """There is nothing parked under that name."""

    status = HTTPStatus.NOT_FOUND


class CopyRefused(ProjectionError):
    """A copy of the tables cannot be made, or cannot take their place: not there, not whole, not verified, or changed since."""

    status = HTTPStatus.CONFLICT


class NoCopy(ProjectionError):
    """There is no copy of the tables."""

    status = HTTPStatus.NOT_FOUND


class MigrationError(ProjectionError):
    """A migration failed, or the schema is not the one that the program expects; the text has the remedy."""

    status = HTTPStatus.CONFLICT


class ModelUnknown(ProjectionError):
    """No read model has that name, or none can be loaded from that place."""

    status = HTTPStatus.NOT_FOUND
