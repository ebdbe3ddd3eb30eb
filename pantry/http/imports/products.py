"""Many products with one request: each is created separately, and the answer has a row for each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from httpkit import JSON, UNSET, Answer, Call, Route, Unset, member, message
from pantry.commands.execution import ProductOutcome
from pantry.commands.imports import NewProduct
from pantry.domain.category import NAME_LENGTH
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
from pantry.http.products import ProductValues
from pantry.http.services import Services
from pantry.http.values import EAN13_SCHEMA, EXAMPLE, checked_ean13

COLUMNS = Columns(
    most=5_000,  # each is an atomic batch
    codes=("ean13", "code", "product_ean13"),
    needed=("name", "unit"),
    quantity="min_stock",
    others=("category", "category_id", "description"),
)
_STOCK = "current_stock"
_NOTE = (
    f"{_STOCK} was not booked: a product begins without stock. Import it as movements: rows with the code, the type `in` and the "
    "quantity"
)


@message
class ImportedProduct:
    """The result of one row. `status` is the status of the answer that it would have had in a separate request."""

    row: int = member(description="1 for the first product")
    status: int = member()
    ean13: str | Unset = member(default=UNSET)
    name: str | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    unit: str | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    min_stock: float | Unset = member(default=UNSET, description="in a dry run: as the row was read")
    category: str | Unset = member(default=UNSET, description="in a dry run: the name of the category, as the row was read")
    error: str | Unset = member(default=UNSET)


@message
class ImportedProducts:
    """The results of all rows."""

    dry_run: bool = member()
    accepted: int = member()
    refused: int = member()
    unknown: int = member(description=UNKNOWN)
    ignored: Sequence[str] = member(description=IGNORED)
    note: str | Unset = member(default=UNSET, description="how to book a stock that the rows have")
    results: Sequence[ImportedProduct] = member()


@message
class ProductRow(ProductValues):
    """The values of a product, with its code."""

    ean13: str = member(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)
    category: str | None = member(default=None, max_length=NAME_LENGTH, description="the name of its category")


async def import_products(request: ImportRequest, call: Call[Services]) -> Answer[ImportedProducts]:
    """Create many products, each by the rules on its own. A repetition with the same key creates nothing twice.

    A table has names in its first line: `ean13`, `name` and `unit`, perhaps `min_stock`, `category` (its name) or `category_id`,
    and `description`. Commas, semicolons or tabs separate its cells, and decimals may have a comma.
    """
    found = await asyncio.to_thread(read, request.rows, call.http.content_type, COLUMNS, product_of_row)
    refused = {number: _refused(number, refusal) for number, refusal in found.bad.items()}

    def result(number: int, outcome: ProductOutcome | Exception) -> ImportedProduct:
        return _result(number, outcome, found.good[number], dry_run=request.dry_run)

    creating = call.services.imports.create(found.good, call.context, dry_run=request.dry_run)
    rows, last = await results_of(refused, creating, result)
    counts = counts_of([row.status for row in rows])
    note = _NOTE if _STOCK in found.ignored else UNSET
    answer = ImportedProducts(dry_run=request.dry_run, ignored=found.ignored, note=note, results=rows, **counts)
    return Answer(answer, sequence=last or None, rows=rows)


def product_of_row(row: Mapping[str, Any]) -> NewProduct:
    """The product of a row. Raises the errors of cattrs."""
    given = JSON.structure(row, ProductRow)
    return NewProduct(ean13=given.ean13, details=given.details, category=given.category or "")


def _result(number: int, outcome: ProductOutcome | Exception, new: NewProduct, *, dry_run: bool) -> ImportedProduct:
    shown: dict[str, Any] = {"ean13": new.ean13}
    if dry_run:
        details = new.details
        shown |= {"name": details.name, "unit": details.unit, "min_stock": quantity_number(details.min_stock)}
        shown |= {"category": new.category} if new.category else {}
    if isinstance(outcome, Exception):
        return _refused(number, Refusal.of(outcome), **shown)
    return ImportedProduct(row=number, status=HTTPStatus.CREATED, **shown)


def _refused(number: int, refusal: Refusal, **shown: Any) -> ImportedProduct:
    return ImportedProduct(row=number, status=refusal.status, error=refusal.reason, **shown)


ROUTES = (
    Route(
        "POST",
        "/api/v1/products:batch",
        import_products,
        summary="Create many products",
        tags=("products",),
        idempotent=True,
        max_body=MAX_BODY,
        time_limit=TIME_LIMIT,
        csv=ImportedProduct,
    ),
)
