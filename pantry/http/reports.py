"""Reports: stock, low stock, consumption, shopping list."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Sized
from datetime import datetime
from typing import cast

from httpkit import Answer, Call, Route, member, message, moment, query
from pantry.domain.errors import ReportTooLarge
from pantry.domain.product import CATEGORY_ID_LENGTH
from pantry.domain.quantity import number
from pantry.http.bodies import ProductBody
from pantry.http.services import Services
from pantry.http.stock import items_of
from pantry.http.values import period, product_filter
from pantry.readmodel.views import ConsumptionView, ProductView, period_of

MOST_PRODUCTS = 100_000
"""The most products that a report of the stock is about: it has some 300 bytes for each, and is made in memory."""


@message
class StockReportAt:
    """The report, now or as it was at some time."""

    as_of: datetime | None = moment(description="as it was then")


@message
class Period:
    """From when to when, and of which products; four weeks up to now if it is left out."""

    since: datetime | None = moment(name="from", description="not before")
    until: datetime | None = moment(name="to", description="not after")
    ean13: str | None = product_filter("only this product")
    category: str | None = query(default=None, max_length=CATEGORY_ID_LENGTH, description="only products of this category")


@message
class Shopping:
    """For which products."""

    category: str | None = query(default=None, max_length=CATEGORY_ID_LENGTH, description="only products of this category")


@message
class StockItem:
    """A product in the report."""

    product: ProductBody = member()
    is_low_stock: bool = member()


@message
class StockReport:
    """All products that are kept, by name."""

    total_products: int = member()
    low_stock_products: int = member()
    items: Sequence[StockItem] = member()


@message
class ConsumptionItem:
    """Sums of the movements of a product that are in effect.

    A movement that was undone does not count, unless its undoing was undone in turn. Undoings never count themselves. The
    differences of stocktakes are corrections, and neither in nor out.
    """

    ean13: str = member()
    name: str = member()
    unit: str = member()
    total_in: float = member(name="in")
    total_out: float = member(name="out")
    corrected: float = member(description="the sum of the differences that stocktakes found")
    net: float = member(description="in, less out, with the corrections")
    per_day: float | None = member(
        description="out, per day of the period in which the product was there, up to now; null if these are less than 7 days"
    )
    current_stock: float = member()
    days_left: float | None = member(description="how long the stock lasts at that rate; null if that is not known")
    unknown_because: str | None = member(description="why days_left is not known")


@message
class ShoppingItem:
    """A product that is low, and how much to buy: up to twice the minimum, or four weeks' consumption if that is more."""

    ean13: str = member()
    name: str = member()
    unit: str = member()
    current_stock: float = member()
    min_stock: float = member()
    suggested: float = member()


async def stock_report(request: StockReportAt, call: Call[Services]) -> Answer[StockReport]:
    """The stock of all products that are kept."""
    rows = await call.services.queries.active_rows(as_of=request.as_of, limit=MOST_PRODUCTS + 1)
    _check_complete(rows, "active=true")
    encoded, low = await asyncio.to_thread(items_of, rows)
    items = cast("Sequence[StockItem]", encoded)  # they are encoded as the class describes them
    return Answer(StockReport(total_products=len(rows), low_stock_products=low, items=items), rows=items)


async def low_stock_report(request: StockReportAt, call: Call[Services]) -> Sequence[ProductBody]:
    """The products that are kept and whose stock has come down to the minimum."""
    products: Sequence[ProductView] = await call.services.queries.products(
        active=True, low_stock=True, as_of=request.as_of, limit=MOST_PRODUCTS + 1
    )
    _check_complete(products, "active=true&low_stock=true")
    return [ProductBody.of(product) for product in products]


def _check_complete(found: Sized, wanted: str) -> None:
    """Raise ReportTooLarge for more products than a report may have: a report with a part of them would look complete."""
    if len(found) > MOST_PRODUCTS:
        raise ReportTooLarge(
            f"the report would have more than {MOST_PRODUCTS:,} products: GET /api/v1/products?{wanted} has them in pages, "
            "each with its stock"
        )


async def consumption_report(request: Period, call: Call[Services]) -> Sequence[ConsumptionItem]:
    """Movements in and out of each active product, and the days that its stock lasts at that rate."""
    await call.services.check_filter(request.ean13)
    since, until = period(request.since, request.until)
    found = await call.services.queries.consumption(since=since, until=until, ean13=request.ean13, category=request.category)
    return [_consumption(item) for item in found]


async def shopping_list(request: Shopping, call: Call[Services]) -> Sequence[ShoppingItem]:
    """The shopping list: the products that are low, with the quantity to buy."""
    since, until = period_of(None, None)
    found = await call.services.queries.consumption(since=since, until=until, category=request.category)
    return [
        ShoppingItem(
            ean13=item.ean13,
            name=item.name,
            unit=item.unit,
            current_stock=number(item.current_stock),
            min_stock=number(item.min_stock),
            suggested=number(item.suggested),
        )
        for item in found
        if item.is_to_buy
    ]


def _consumption(item: ConsumptionView) -> ConsumptionItem:
    return ConsumptionItem(
        ean13=item.ean13,
        name=item.name,
        unit=item.unit,
        total_in=number(item.total_in),
        total_out=number(item.total_out),
        corrected=number(item.total_corrected),
        net=number(item.net),
        per_day=None if item.per_day is None else number(item.per_day),
        current_stock=number(item.current_stock),
        days_left=item.days_left,
        unknown_because=item.unknown_because,
    )


_REPORTS = "/api/v1/reports"
_TAGS = ("reports",)

ROUTES = (
    Route(
        "GET",
        f"{_REPORTS}/stock",
        stock_report,
        summary="Stock of all products",
        tags=_TAGS,
        csv=StockItem,
        errors=(422,),
        kept=True,
    ),
    Route(
        "GET",
        f"{_REPORTS}/low-stock",
        low_stock_report,
        summary="Products that are low",
        tags=_TAGS,
        csv=ProductBody,
        errors=(422,),
    ),
    Route(
        "GET",
        f"{_REPORTS}/consumption",
        consumption_report,
        summary="In, out, days left",
        tags=_TAGS,
        csv=ConsumptionItem,
        errors=(404,),
    ),
    Route("GET", f"{_REPORTS}/shopping-list", shopping_list, summary="List the products to buy", tags=_TAGS, csv=ShoppingItem),
)
