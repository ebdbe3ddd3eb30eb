"""Refusals of the ledger, with a status for the edge and a text that a user can act on."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar

from pantry.domain.quantity import text


class PantryError(Exception):
    """Root of the package's errors. `status` is the HTTP status that the edge answers with."""

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR


class BadInput(PantryError):
    """A value that cannot be right; `field` names it."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InsufficientStock(PantryError):
    """A movement out that the stock does not cover. Both quantities are in thousandths."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self, *, available: int, requested: int) -> None:
        super().__init__(f"insufficient stock: available {text(available)}, requested {text(requested)}")
        self.available = available
        self.requested = requested


class NotFound(PantryError):
    """No such product, category or movement."""

    status = HTTPStatus.NOT_FOUND


class Taken(PantryError):
    """The thing exists already."""

    status = HTTPStatus.CONFLICT


class ReportTooLarge(PantryError):
    """More products than one report holds."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class UnitInUse(PantryError):
    """The unit of the product, and its quantities in it, do not allow that."""

    status = HTTPStatus.CONFLICT


class UndoneAlready(PantryError):
    """The movement has been undone before."""

    status = HTTPStatus.CONFLICT


class UndosMoved(PantryError):
    """The product has another unit, or one more undone movement, than when they were read. Read them again."""

    status = HTTPStatus.CONFLICT


class Changed(PantryError):
    """The resource is not in the version that the caller has seen."""

    status = HTTPStatus.PRECONDITION_FAILED
