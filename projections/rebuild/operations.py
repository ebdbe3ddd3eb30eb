"""Orders of operators for a read model, done by the process that brings it up to date: unpark, switch, roll back.

The serving process is asked over the broker, by the database's name. If none serves, the asking process opens the database and
does it itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import attrs
import msgspec
import structlog

from eventlog import EventLog, EventLogError
from projections.errors import CopyRefused, ProjectionError
from projections.model import ReadModel
from projections.projector.projector import Projector
from projections.rebuild.copies import Copies, CopyPart, Switching
from projections.rebuild.rebuild import switch
from projections.store import Store

log = structlog.get_logger(__name__)


class OrderKind(StrEnum):
    """The kinds of orders."""

    UNPARK = "unpark"
    SWITCH = "switch"
    ROLLBACK = "rollback"


@attrs.frozen(kw_only=True)
class AdminCommand:
    """An order for a database; `projection` and `aggregate` restrict an unpark."""

    work: OrderKind
    database: str
    projection: str | None = None
    aggregate: str | None = None


@attrs.frozen(kw_only=True)
class AdminResult:
    """The result of an order: the sequence of the tables, and for an `unpark` the freed and the parked aggregates."""

    sequence: int = 0
    freed: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class OrderRefusal:
    """An order that was refused: the HTTP status of the error, its exit code if it has one, and its text."""

    status: int
    message: str
    exit_code: int | None = None


class OrderRefused(ProjectionError):
    """The process that was asked refuses."""

    def __init__(self, refused: OrderRefusal) -> None:
        super().__init__(refused.message)
        self.status = HTTPStatus(refused.status)  # type: ignore[misc]  # as the process that refused had it
        self.exit_code = refused.exit_code


def subject_of(model: ReadModel) -> str:
    """Where orders for a read model are taken."""
    return f"projections.{model.name}.orders"


class AdminHandler:
    """Does orders one at a time. `projector` runs, or has been loaded; without `copies` no order switches."""

    def __init__(self, projector: Projector, store: Store, copies: Copies | None, event_log: EventLog, model: ReadModel) -> None:
        self._projector = projector
        self._store = store
        self._copies = copies
        self._log = event_log
        self._model = model
        self._turn = asyncio.Lock()

    def take(self, request: bytes) -> Awaitable[bytes] | None:
        """An order from the broker, if it is for this database: see `eventlog.jetstream.requests`."""
        try:
            order = msgspec.json.decode(request, type=AdminCommand)
        except msgspec.DecodeError:
            return None
        return self._answer(order) if order.database == self._store.identity else None

    async def _answer(self, order: AdminCommand) -> bytes:
        log.info("ordered", **{name: value for name, value in attrs.asdict(order).items() if value is not None})
        try:
            return msgspec.json.encode({"done": await self.do(order)})
        except (ProjectionError, EventLogError) as error:
            log.warning("order refused", work=order.work, reason=str(error))
            return msgspec.json.encode(
                {"refused": OrderRefusal(status=error.status, message=str(error), exit_code=getattr(error, "exit_code", None))}
            )

    async def do(self, order: AdminCommand) -> AdminResult:
        """Do it. Raises ProjectionError, EventLogError."""
        async with self._turn:
            if order.work is OrderKind.UNPARK:
                done = await self._projector.unpark(order.projection, order.aggregate)
                return AdminResult(
                    sequence=self._projector.farthest,
                    freed=tuple(f"{one.projection} {one.subject}" for one in done.freed),
                    parked=tuple(f"{one.projection} {one.subject}" for one in done.parked),
                )
            if self._copies is None or not isinstance(self._store, Switching):
                raise CopyRefused("this database keeps no copies")
            part = CopyPart.NEW if order.work is OrderKind.SWITCH else CopyPart.OLD
            await switch(self._projector, self._store, self._copies, self._log, self._model, part)
            return AdminResult(sequence=self._projector.farthest)


def outcome_of(answer: bytes) -> AdminResult:
    """The result of an order, from the answer to it. Raises OrderRefused."""
    found: dict[str, Any] = msgspec.json.decode(answer)
    if "refused" in found:
        raise OrderRefused(msgspec.convert(found["refused"], OrderRefusal))
    return msgspec.convert(found["done"], AdminResult)
