"""Refusals of the tracker. Each has a status for the edge, and a text with a remedy for the user."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import ClassVar


class GctdError(Exception):
    """Root of the package's errors. `status` is the HTTP status that the edge answers with."""

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class BadInput(GctdError):
    """A value that cannot be right; `field` names it."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class BadSettings(GctdError):
    """Settings of a project that cannot be right, all of them; each of `problems` names one."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, problems: Sequence[BadInput]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class NotFound(GctdError):
    """No such repository, project, task, analysis or worker."""

    status = HTTPStatus.NOT_FOUND


class Refused(GctdError):
    """The aggregate's present state does not allow that."""

    status = HTTPStatus.CONFLICT


class Overtaken(Refused):
    """The state behind the decision has changed: decide on the new state."""
