"""Many movements with one request: each is judged separately, and the answer has a row for each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from httpkit import JSON, UNSET, Answer, Call, Route, Unset, member, message
from pantry.commands.execution import NewMovement, ProductOutcome
from pantry.domain.product import MovementRecorded
from pantry.domain.quantity import number as quantity_number
from pantry.http.imports.rows import (
    IGNORED,
    MAX_BODY,
    TIME_LIMIT,
    UNKNOWN,
    Columns,
    ImportRequest,
    Refusal,
    counts_of,
    read,
    results_of,
)
from pantry.http.movements import GivenMovement
from pantry.http.services import Services

COLUMNS = Columns(
    most=100_000,
    codes=("product_ean13", "ean13", "code"),
    needed=("type", "quantity"),
    quantity="quantity",
    others=("reason", "notes", "created_by", "unit"),
)
_GIVEN = JSON.get_structure_hook(GivenMovement)


@message
class ImportedRow:
    """The result of one row. `status` is the status of the answer that it would have had in a separate request."""

    row: int = member(description="1 for the first movement")
    status: int = member()
    product_ean13: str | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    type: str | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    quantity: float | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    id: str | Unset = member(default=UNSET)
    stock_after: float | Unset = member(default=UNSET)
    error: str | Unset = member(default=UNSET)


@message
class ImportBody:
    """The results of all rows."""

    dry_run: bool = member()
    accepted: int = member()
    refused: int = member()
    unknown: int = member(description=UNKNOWN)
    ignored: Sequence[str] = member(description=IGNORED)
    results: Sequence[ImportedRow] = member()


async def import_movements(request: ImportRequest, call: Call[Services]) -> Answer[ImportBody]:
    """Book many movements in their order, each by the rules on its own. A repetition with the same key books nothing twice.

    A table has names in its first line: `product_ean13`, `type` and `quantity`, perhaps `reason`, `notes`, `created_by`
    and `unit`. Commas, semicolons or tabs separate its cells, and decimals may have a comma.
    """
    # A hundred thousand rows take seconds to read: not in the event loop.
    found = await asyncio.to_thread(read, request.rows, call.http.content_type, COLUMNS, _movement)
    ignored = found.ignored
    shown = found.good if request.dry_run else {}
    refused = {number: _refused(number, refusal) for number, refusal in found.bad.items()}
    booking = call.services.imports.book(found.good, call.context, dry_run=request.dry_run)
    del found  # free the rows early
    rows, last = await results_of(refused, booking, lambda number, outcome: _result(number, outcome, shown.get(number)))
    counts = counts_of([row.status for row in rows])
    answer = ImportBody(dry_run=request.dry_run, ignored=ignored, results=rows, **counts)
    return Answer(answer, sequence=last or None, rows=rows)


def _movement(row: Mapping[str, Any]) -> NewMovement:
    given: GivenMovement = _GIVEN(row, GivenMovement)
    return given.movement


def _result(number: int, outcome: ProductOutcome | Exception, shown: NewMovement | None) -> ImportedRow:
    if isinstance(outcome, Exception):
        return _refused(number, Refusal.of(outcome), shown)
    [event] = outcome.events
    assert isinstance(event, MovementRecorded)
    stock = quantity_number(event.stock)
    return ImportedRow(row=number, status=HTTPStatus.CREATED, id=event.id, stock_after=stock, **_as_read(shown))


def _refused(number: int, refusal: Refusal, shown: NewMovement | None = None) -> ImportedRow:
    return ImportedRow(row=number, status=refusal.status, error=refusal.reason, **_as_read(shown))


def _as_read(shown: NewMovement | None) -> dict[str, Any]:
    if shown is None:
        return {}
    return {"product_ean13": shown.ean13, "type": shown.type, "quantity": quantity_number(shown.quantity)}


ROUTES = (
    Route(
        "POST",
        "/api/v1/movements:batch",
        import_movements,
        summary="Book many movements",
        tags=("movements",),
        idempotent=True,
        max_body=MAX_BODY,
        time_limit=TIME_LIMIT,
        csv=ImportedRow,
    ),
)
