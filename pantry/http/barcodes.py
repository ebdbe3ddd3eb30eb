"""Routes of barcodes: the codes that name a product, each with a pack factor."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from httpkit import Answer, Call, Route, decode_cursor, member, message, page_of, path, query
from pantry.domain.errors import NotFound
from pantry.domain.quantity import ONE
from pantry.http.bodies import BarcodeBody
from pantry.http.categories import PAGE
from pantry.http.services import Services
from pantry.http.values import (
    CODE_EXAMPLE,
    CODE_SCHEMA,
    CURSOR,
    EAN13_SCHEMA,
    EXAMPLE,
    checked_code,
    checked_ean13,
    product_filter,
    quantity,
)
from pantry.readmodel.views import BarcodeView
from servicekit import answer

_WRONG = HTTPStatus.UNPROCESSABLE_ENTITY


@message
class ListBarcodes:
    """Which codes to list."""

    ean13: str | None = product_filter("only codes of this product")
    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=CURSOR, max_length=4096, description="resumes after a page")


@message
class OneBarcode:
    """Names a code, of any length."""

    code: str = path(parse=checked_code, schema=CODE_SCHEMA, example=CODE_EXAMPLE)


@message
class GivenBarcode:
    """The product that a code is to name."""

    code: str = path(parse=checked_code, schema=CODE_SCHEMA, example=CODE_EXAMPLE, otherwise=_WRONG)
    product_ean13: str = member(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)
    factor: int = quantity(default=ONE, example=6, description="the quantity of the product that the code stands for")


async def list_barcodes(request: ListBarcodes, call: Call[Services]) -> Answer[Sequence[BarcodeBody]]:
    """Codes of products in order, apart from the keys of the products."""
    await call.services.check_filter(request.ean13)
    after = None if request.cursor is None else decode_cursor(request.cursor, tuple[str, str])[0]
    found = await call.services.queries.barcodes(ean13=request.ean13, after=after, limit=request.limit + 1)
    page, more = page_of(found, request.limit, lambda barcode: (barcode.code, barcode.product_ean13))
    return Answer([BarcodeBody.of(barcode) for barcode in page], cursor=more)


async def get_barcode(request: OneBarcode, call: Call[Services]) -> BarcodeBody:
    """The product that a code names: also the key of a product, EAN-8, UPC-A, UPC-E or GTIN-14."""
    found = await call.services.queries.barcode(request.code)
    if found is None:
        raise NotFound(f"no product has the code {request.code}")
    return BarcodeBody.of(found)


async def assign_barcode(request: GivenBarcode, call: Call[Services]) -> Answer[BarcodeBody]:
    """Let a code name a product, or change its pack factor. A code names one product at a time."""
    outcome = await call.services.pantry.assign_barcode(request.code, request.product_ean13, request.factor, call.context)
    body = BarcodeBody.of(BarcodeView(code=outcome.state.code, product_ean13=request.product_ean13, factor=request.factor))
    return answer(outcome, body)


async def remove_barcode(request: OneBarcode, call: Call[Services]) -> Answer[None]:
    """Free a code. Movements that were booked with it stay."""
    outcome = await call.services.pantry.remove_barcode(request.code, call.context)
    return answer(outcome, None)


_ONE = "/api/v1/codes/{code}"
_TAGS = ("codes",)

ROUTES = (
    Route("GET", "/api/v1/codes", list_barcodes, summary="List codes", tags=_TAGS, errors=(404,), csv=BarcodeBody),
    Route("GET", _ONE, get_barcode, summary="The product of a code", tags=_TAGS, errors=(404,)),
    Route("PUT", _ONE, assign_barcode, summary="Assign a code", tags=_TAGS, errors=(404, 409)),
    Route("DELETE", _ONE, remove_barcode, summary="Remove a code", tags=_TAGS, errors=(404, 409)),
)
