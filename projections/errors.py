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


class StoreDamaged(ProjectionError):
    """The database is not a sound database of this program."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Behind(ProjectionError):
    """The read model has not reached the asked sequence within the time allowed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class ProjectorStopped(ProjectionError):
    """The projector stopped because going on would skip or repeat events; the text says why."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class CheckpointMoved(ProjectionError):
    """Another projector advanced the checkpoint: this one must not go on."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class MigrationError(ProjectionError):
    """A migration failed or the schema is dirty; the text says what to do."""

    status = HTTPStatus.CONFLICT
