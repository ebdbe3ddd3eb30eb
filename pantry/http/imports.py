"""Many movements with one request: a JSON list, NDJSON or CSV; each is judged on its own, and the answer has a row for each."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any

from cattrs.errors import BaseValidationError

from httpkit.errors import FieldError
from httpkit.messages import body
from httpkit.messages.decoding import JSON, flatten
from httpkit.messages.fields import UNSET, Unset, member, message, payload, query
from httpkit.problems import INTERNAL, Invalid, Malformed, Mapped, text_of
from httpkit.routes import Answer, Call, Route
from pantry.domain.product import MovementRecorded
from pantry.domain.quantity import number as quantity_number
from pantry.http.movements import GivenMovement
from pantry.http.services import Services
from pantry.pantry import NewMovement, ProductOutcome
from servicekit.command_context import context

MOST_ROWS = 100_000
MAX_BODY = 32 * 1024**2
TIME_LIMIT = 300.0
_COLUMNS = ("product_ean13", "type", "quantity", "reason", "notes", "created_by")
_ROWS = {"type": "array"}
"""The body as JSON; the answer has the fault of each row."""
_MEDIA = ("application/json", "application/x-ndjson", "text/csv")


@message
class Import:
    """Movements, as a JSON list, one JSON object on a line, or CSV with a first line of names."""

    rows: bytes = payload(*_MEDIA, schema=_ROWS, description="the movements")
    dry_run: bool = query(default=False, description="only report the result that each row would have")


@message
class ImportedRow:
    """The result of one movement. `status` is the status of the answer that it would have had in a separate request."""

    row: int = member(description="1 for the first movement")
    status: int = member()
    id: str | Unset = member(default=UNSET)
    stock_after: float | Unset = member(default=UNSET)
    error: str | Unset = member(default=UNSET)


@message
class ImportBody:
    """The results of all rows."""

    dry_run: bool = member()
    accepted: int = member()
    refused: int = member()
    results: Sequence[ImportedRow] = member()


async def import_movements(request: Import, call: Call[Services]) -> Answer[ImportBody]:
    """Book many movements in their order, each by the rules on its own. A repetition with the same key books nothing twice."""
    # A hundred thousand rows take seconds to read: not in the event loop.
    good, results = await asyncio.to_thread(_read, request.rows, call.http.content_type)
    last = 0
    booking = call.services.pantry.move_all(good, context(call), dry_run=request.dry_run)
    del good  # what is booked is kept no longer than that takes
    async for outcomes in booking:
        for number, outcome in outcomes.items():
            results[number] = _result(number, outcome)
            if not isinstance(outcome, Exception):
                last = max(last, outcome.sequence)
    ordered = [results[number] for number in sorted(results)]
    accepted = sum(row.error is UNSET for row in ordered)
    answer = ImportBody(dry_run=request.dry_run, accepted=accepted, refused=len(ordered) - accepted, results=ordered)
    return Answer(answer, sequence=await call.services.side.wait_visible(last) if last else None, rows=ordered)


def _read(raw: bytes, media: str) -> tuple[dict[int, NewMovement], dict[int, ImportedRow]]:
    """Return, by number, the movements and the errors of the other rows. Raises Malformed, Invalid."""
    good: dict[int, NewMovement] = {}
    bad: dict[int, ImportedRow] = {}
    for number, row in enumerate(_rows(raw, media), 1):
        if number > MOST_ROWS:
            raise Invalid([FieldError(f"at most {MOST_ROWS} movements at a time")])
        made = _made(number, row)
        if isinstance(made, ImportedRow):
            bad[number] = made
        else:
            good[number] = made
    return good, bad


def _made(number: int, row: Mapping[str, Any] | FieldError) -> NewMovement | ImportedRow:
    if isinstance(row, FieldError):
        return ImportedRow(row=number, status=HTTPStatus.BAD_REQUEST, error=row.detail)
    try:
        return JSON.structure(row, GivenMovement).movement
    except BaseValidationError as error:
        wrong = "; ".join(f"{pointer.removeprefix('#/') or 'the row'}: {detail}" for pointer, detail in flatten(error))
    except ValueError as error:
        wrong = str(error)
    return ImportedRow(row=number, status=HTTPStatus.UNPROCESSABLE_ENTITY, error=wrong)


def _result(number: int, outcome: ProductOutcome | Exception) -> ImportedRow:
    if isinstance(outcome, Exception):
        status = HTTPStatus(outcome.status) if isinstance(outcome, Mapped) else HTTPStatus.INTERNAL_SERVER_ERROR
        text = INTERNAL if status is HTTPStatus.INTERNAL_SERVER_ERROR else text_of(outcome)
        return ImportedRow(row=number, status=status, error=text)
    [event] = outcome.events
    assert isinstance(event, MovementRecorded)
    return ImportedRow(row=number, status=HTTPStatus.CREATED, id=event.id, stock_after=quantity_number(event.stock))


def _rows(raw: bytes, media: str) -> Iterable[Mapping[str, Any] | FieldError]:
    """Return the rows of a body; a row that cannot be read is a FieldError among them. Raises Malformed, Invalid."""
    if media == "text/csv":
        return _of_csv(body.text(raw).removeprefix("\ufeff"))
    if media == "application/x-ndjson":
        return (_of_line(line) for line in raw.splitlines() if line.strip())
    rows = body.parse(raw)
    if not isinstance(rows, list):
        raise Invalid([FieldError("must be a list of movements", pointer="#")])
    return (row if isinstance(row, dict) else FieldError("must be an object") for row in rows)


def _of_line(line: bytes) -> Mapping[str, Any] | FieldError:
    try:
        row = body.parse(line)
    except Malformed as error:
        return FieldError(str(error))
    return row if isinstance(row, dict) else FieldError("must be an object")


def _of_csv(text: str) -> Iterator[Mapping[str, Any] | FieldError]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    names = reader.fieldnames or ()
    missing = [name for name in _COLUMNS[:3] if name not in names]
    if missing:
        raise Invalid([FieldError(f"the first line has no column {', '.join(missing)}", pointer="#")])
    try:
        for row in reader:
            yield _of_cells(row)
    except csv.Error as error:
        raise Invalid([FieldError(f"line {reader.line_num}: {error}", pointer="#")]) from None


def _of_cells(row: Mapping[str | None, Any]) -> Mapping[str, Any] | FieldError:
    if None in row:
        return FieldError("has more cells than the first line")
    cells: dict[str, Any] = {name: row[name] for name in _COLUMNS if row.get(name) not in (None, "")}
    if "quantity" in cells:
        try:
            cells["quantity"] = Decimal(cells["quantity"])
        except InvalidOperation:
            return FieldError("quantity: must be a number")
    return cells


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
