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


class RowRefused(ProjectionError):
    """The database refuses a row for what is in it (a constraint, a value that it cannot hold): no retry will help."""


class Behind(ProjectionError):
    """The read model has not reached the asked sequence within the time allowed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class ProjectorStopped(ProjectionError):
    """The projector stopped because going on would skip or repeat events; the text says why."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class CheckpointMoved(ProjectorStopped):
    """Another projector advanced the checkpoint: this one must not go on."""


class PoisonedCommit(ProjectorStopped):
    """A commit cannot be read or applied; the text names its sequence, its aggregate, the projection and the reason."""

    def __init__(self, sequence: int, subject: str, projection: str | None, reason: str) -> None:
        by = f"projection {projection!r}" if projection else "the event log's registry"
        super().__init__(f"sequence {sequence} ({subject}) cannot be applied by {by}: {reason}")
        self.sequence = sequence
        self.subject = subject
        self.projection = projection


class MigrationError(ProjectionError):
    """A migration failed, or the schema is not what the program expects; the text says what to do."""

    status = HTTPStatus.CONFLICT
