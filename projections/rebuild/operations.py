"""Operations on a read model, done by the process that brings it up to date: unpark, switch, roll back.

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
from projections.rebuild.rebuild import switch
from projections.store import Copies, CopyPart, Store, Switching

log = structlog.get_logger(__name__)


class OperationKind(StrEnum):
    """The kinds of operations."""

    UNPARK = "unpark"
    SWITCH = "switch"
    ROLLBACK = "rollback"


@attrs.frozen(kw_only=True)
class Operation:
    """An operation on a database; `projection` and `aggregate` restrict an unpark."""

    kind: OperationKind
    database: str
    projection: str | None = None
    aggregate: str | None = None


@attrs.frozen(kw_only=True)
class OperationResult:
    """The result of an operation: the sequence of the tables, and for an `unpark` the freed and the parked aggregates."""

    sequence: int = 0
    freed: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()


class OperationRefused(ProjectionError):
    """The process that was asked refuses."""

    def __init__(self, message: str, status: int, exit_code: int | None) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)  # type: ignore[misc]  # as the process that refused had it
        self.exit_code = exit_code


def subject_of(model: ReadModel) -> str:
    """The subject of requests for operations on a read model."""
    return f"projections.{model.name}.operations"


class OperationHandler:
    """Does operations one at a time. `projector` runs, or has been loaded; without `copies` no operation switches."""

    def __init__(self, projector: Projector, store: Store, copies: Copies | None, event_log: EventLog, model: ReadModel) -> None:
        self._projector = projector
        self._store = store
        self._copies = copies
        self._log = event_log
        self._model = model
        self._turn = asyncio.Lock()

    def take(self, request: bytes) -> Awaitable[bytes] | None:
        """An operation from the broker, if it is for this database: see `eventlog.jetstream.requests`."""
        try:
            operation = msgspec.json.decode(request, type=Operation)
        except msgspec.DecodeError:
            return None
        return self._answer(operation) if operation.database == self._store.identity else None

    async def _answer(self, operation: Operation) -> bytes:
        log.info("operation", **{name: value for name, value in attrs.asdict(operation).items() if value is not None})
        try:
            return msgspec.json.encode({"done": await self.do(operation)})
        except (ProjectionError, EventLogError) as error:
            log.warning("operation refused", kind=operation.kind, reason=str(error))
            exit_code = getattr(error, "exit_code", None)
            return msgspec.json.encode({"refused": {"message": str(error), "status": error.status, "exit_code": exit_code}})

    async def do(self, operation: Operation) -> OperationResult:
        """Do it. Raises ProjectionError, EventLogError."""
        async with self._turn:
            if operation.kind is OperationKind.UNPARK:
                done = await self._projector.unpark(operation.projection, operation.aggregate)
                freed, parked = (tuple(f"{p.projection} {p.subject}" for p in places) for places in (done.freed, done.parked))
                return OperationResult(sequence=self._projector.farthest, freed=freed, parked=parked)
            if self._copies is None or not isinstance(self._store, Switching):
                raise CopyRefused("this database keeps no copies")
            part = CopyPart.NEW if operation.kind is OperationKind.SWITCH else CopyPart.OLD
            await switch(self._projector, self._store, self._copies, self._log, self._model, part)
            return OperationResult(sequence=self._projector.farthest)


def outcome_of(answer: bytes) -> OperationResult:
    """The result of an operation, from the answer to it. Raises OperationRefused."""
    outcome: dict[str, Any] = msgspec.json.decode(answer)
    if "refused" in outcome:
        raise OperationRefused(**outcome["refused"])
    return msgspec.convert(outcome["done"], OperationResult)
