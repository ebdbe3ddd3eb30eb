"""Everything that the read side can refuse."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar


class ProjectionError(Exception):
    """Root of the package's errors. `status` is the HTTP status that the edge answers with."""

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class StoreUnavailable(ProjectionError):
    """The database cannot be opened, read or written now; nothing was changed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class StoreInUse(StoreUnavailable):
    """Another process brings this database up to date; two must not."""


class StoreDamaged(ProjectionError):
    """The database is not a sound database of this program."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class StoreForeign(StoreDamaged):
    """The database is that of another program: it is left alone."""


class RowRefused(ProjectionError):
    """The database refuses a row for what is in it (a constraint, a value that it cannot hold): no retry will help."""


class ArgumentRefused(ProjectionError):
    """A query was asked with a value that cannot be one: a text where there must be a time."""

    status = HTTPStatus.BAD_REQUEST


class NotLeading(ProjectionError):
    """Another process brings this database up to date now; this one may look, and may ask again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Behind(ProjectionError):
    """The read model has not reached the asked sequence within the time allowed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class ProjectorStopped(ProjectionError):
    """The projector stopped because going on would skip or repeat events; the text says why."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class WorkerLost(ProjectionError):
    """A process that derives rows dies over and over; the checkpoint is where it was before."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class CheckpointMoved(ProjectorStopped):
    """Another projector advanced the checkpoint: this one must not go on."""


class NotParked(ProjectionError):
    """There is nothing parked under that name."""

    status = HTTPStatus.NOT_FOUND


class CopyRefused(ProjectionError):
    """A copy of the tables cannot take their place: it is not there, not whole, not verified, or not what was verified."""

    status = HTTPStatus.CONFLICT


class NoCopy(ProjectionError):
    """There is no copy of the tables."""

    status = HTTPStatus.NOT_FOUND


class MigrationError(ProjectionError):
    """A migration failed, or the schema is not what the program expects; the text says what to do."""

    status = HTTPStatus.CONFLICT
