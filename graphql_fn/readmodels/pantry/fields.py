"""The fields of the function `pantry`: products, categories, movements, the stock at any time, reports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from graphql import GraphQLResolveInfo

from graphql_fn.core.errors import PublicError
from graphql_fn.core.running.planning import SourceResolver
from graphql_fn.readmodels.asking import Asking
from graphql_fn.readmodels.binding import Resolver, attribute, found_by, loaded
from graphql_fn.readmodels.connections import PageConnection, connection, of_sorted
from graphql_fn.readmodels.nodes import node_id, projections, split_id
from graphql_fn.readmodels.paging import ListOrder, Time, chosen
from graphql_fn.readmodels.pantry.quantities import converted_by, exact, exact_of
from httpkit import parse_time
from pantry.domain.errors import BadInput
from pantry.readmodel import graph
from pantry.readmodel.graph import PantryGraph, StockCount
from pantry.readmodel.queries import PantryQueries
from pantry.readmodel.statements import MOVEMENTS_OF_ALL
from pantry.readmodel.tables import name_key
from pantry.readmodel.views import CategoryView, MovementView, ProductView, period_of, readable

Info: TypeAlias = "GraphQLResolveInfo[Asking[PantryGraph]]"

PRODUCT_ORDERS = {
    "NAME": ListOrder(graph.PRODUCTS, ("name_key", "ean13"), (str, str)),
    "EAN13": ListOrder(graph.PRODUCTS_BY_CODE, ("ean13",), (str,), "EAN13"),
    "QUANTITY": ListOrder(graph.PRODUCTS_BY_STOCK, ("current_stock", "ean13"), (int, str), "QUANTITY"),
    "UPDATED_AT": ListOrder(graph.PRODUCTS_BY_CHANGE, ("updated_at", "ean13"), (Time, str), "UPDATED_AT"),
}
CATEGORY_ORDER = ListOrder(graph.CATEGORIES, ("name_key", "id"), (str, str))
MOVEMENT_ORDER = ListOrder(MOVEMENTS_OF_ALL, ("sequence", "position"), (int, int))


async def _node(_: Any, info: Info, id: str) -> Any:  # noqa: A002 - the argument's name in the schema
    if (key := split_id(id)) is not None:
        code, _, time = key[0].partition("@")
        if not id.startswith("Product:"):
            return None
        return await info.context.load(PantryGraph.products_by_code, code, _moment(time) if time else None)
    category, movement = await asyncio.gather(
        info.context.load(PantryGraph.categories_by_id, id), info.context.load(PantryGraph.movements_by_id, id)
    )
    return category or movement


def _moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError:
        raise PublicError("the time in id is wrong") from None


def _product_id(product: ProductView, _: Info) -> str:
    """The id; a product in the past has the time since which it was so, which finds the same state again."""
    place = product.ean13 if product.version is not None else f"{product.ean13}@{product.updated_at}"
    return node_id("Product", place)


async def _product(_: Any, info: Info, ean13: str, as_of: datetime | None = None) -> ProductView | None:
    found: ProductView | None = await info.context.load(PantryGraph.products_by_code, ean13, as_of)
    return found


async def _products(
    _: Any,
    info: Info,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    order_by: Mapping[str, Any] | None = None,
    as_of: datetime | None = None,
    **page: Any,
) -> PageConnection[ProductView]:
    wanted = {**(filter or {})}
    if "low" in wanted:
        wanted["low_stock"] = wanted.pop("low")
    if wanted.get("search") is not None:
        wanted["search"] = name_key(wanted["search"]) or None
    conditions = {**wanted, "as_of": as_of}
    order, queries = chosen(PRODUCT_ORDERS, order_by), await info.context.queries()
    part = order.part(**page)
    found = await queries.products(part, order.columns, **conditions)
    return connection(found, part, order, lambda: queries.count_products(**conditions))


async def _categories(_: Any, info: Info, **page: Any) -> PageConnection[CategoryView]:
    part, queries = CATEGORY_ORDER.part(**page), await info.context.queries()
    return connection(await queries.categories(part), part, CATEGORY_ORDER, queries.count_categories)


async def _movements(
    _: Any,
    info: Info,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    order_by: Mapping[str, Any] | None = None,
    **page: Any,
) -> PageConnection[MovementView]:
    wanted = {**(filter or {})}
    if (kind := wanted.pop("kind", None)) is not None:
        wanted["type"] = kind.lower()
    conditions = {{"from": "since", "to": "until"}.get(name, name): value for name, value in wanted.items()}
    order, queries = MOVEMENT_ORDER.directed((order_by or {}).get("direction")), await info.context.queries()
    part = order.part(**page)
    found = await queries.movements(part, order.columns, **conditions)
    return connection(found, part, order, lambda: queries.count_movements(**conditions))


async def _stock_report(_: Any, info: Info, as_of: datetime | None = None) -> StockCount:
    return await (await info.context.queries()).report(as_of=as_of)


async def _consumption(_: Any, info: Info, ean13: str | None = None, category: str | None = None, **given: Any) -> Any:
    try:
        since, until = period_of(given.pop("from", None), given.pop("to", None))
    except BadInput as error:
        raise PublicError(str(error)) from None
    queries = PantryQueries(await info.context.database())
    found = await queries.consumption(since=since, until=until, ean13=ean13, category=category)
    return of_sorted(found, PRODUCT_ORDERS["NAME"], **given)


async def _shopping_list(_: Any, info: Info, category: str | None = None, **page: Any) -> Any:
    since, until = period_of(None, None)
    queries = PantryQueries(await info.context.database())
    found = await queries.consumption(since=since, until=until, category=category)
    return of_sorted([item for item in found if item.is_to_buy], PRODUCT_ORDERS["NAME"], **page)


async def _movements_of(product: ProductView, info: Info, **page: Any) -> PageConnection[MovementView]:
    context, part = info.context, MOVEMENT_ORDER.part(**page)
    found = await context.load(PantryGraph.movements_of, product.ean13, part)
    return connection(found, part, MOVEMENT_ORDER, lambda: context.count(PantryGraph.count_movements_of, product.ean13))


async def _products_of(category: CategoryView, info: Info, **page: Any) -> PageConnection[ProductView]:
    context, order = info.context, PRODUCT_ORDERS["NAME"]
    part = order.part(**page)
    found = await context.load(PantryGraph.products_of, category.id, part)
    return connection(found, part, order, lambda: context.count(PantryGraph.count_products_of, category.id))


async def _quantity_at(product: ProductView, info: Info, time: datetime) -> str:
    return exact(await info.context.load(PantryGraph.stock_at, product.ean13, time) or 0)


RESOLVERS: dict[str, Resolver] = {
    "Query.node": _node,
    "Query.product": _product,
    "Query.products": _products,
    "Query.category": found_by(PantryGraph.categories_by_id),
    "Query.categories": _categories,
    "Query.movement": found_by(PantryGraph.movements_by_id),
    "Query.movements": _movements,
    "Query.stockReport": _stock_report,
    "Query.consumption": _consumption,
    "Query.shoppingList": _shopping_list,
    "Query.projections": projections,
    "Product.id": _product_id,
    "Product.quantity": exact_of("current_stock"),
    "Product.minimum": exact_of("min_stock"),
    "Product.isLowStock": attribute("is_low"),
    "Product.category": loaded(PantryGraph.categories_by_id, "category_id"),
    "Product.quantityAt": _quantity_at,
    "Product.movements": _movements_of,
    "Category.products": _products_of,
    "Movement.product": loaded(PantryGraph.products_by_code, "product_ean13", None),
    "Movement.ean13": attribute("product_ean13"),
    "Movement.kind": converted_by("type", str.upper),
    "Movement.amount": exact_of("quantity"),
    "Movement.note": converted_by("notes", readable),
    "Movement.author": converted_by("created_by", readable),
    "Movement.quantityAfter": exact_of("stock_after"),
    "Movement.reverses": loaded(PantryGraph.movements_by_id, "reverses"),
    "Movement.reversedBy": loaded(PantryGraph.movements_by_id, "reversed_by"),
    "Movement.quantityCounted": exact_of("counted"),
    "Consumption.product": loaded(PantryGraph.products_by_code, "ean13", None),
    "Consumption.ean13": attribute("ean13"),
    "Consumption.name": attribute("name"),
    "Consumption.unit": attribute("unit"),
    "Consumption.amountIn": exact_of("total_in"),
    "Consumption.amountOut": exact_of("total_out"),
    "Consumption.amountCorrected": exact_of("total_corrected"),
    "Consumption.amountNet": exact_of("net"),
    "Consumption.amountPerDay": SourceResolver(lambda item: None if item.per_day is None else exact(item.per_day)),
    "Consumption.quantity": exact_of("current_stock"),
    "Consumption.daysLeft": attribute("days_left"),
    "Consumption.unknownBecause": attribute("unknown_because"),
    "ShoppingItem.product": loaded(PantryGraph.products_by_code, "ean13", None),
    "ShoppingItem.quantity": exact_of("current_stock"),
    "ShoppingItem.minimum": exact_of("min_stock"),
    "ShoppingItem.amount": exact_of("suggested"),
    "LowStockChange.isLowStock": attribute("product.is_low"),
}


SCANS = {
    "Query.products": ("products",),
    "Query.movements": ("movements",),
    "Query.stockReport": ("products",),
    "Query.consumption": ("products", "movements"),
    "Query.shoppingList": ("products", "movements"),
    "ProductConnection.totalCount": ("products",),
    "MovementConnection.totalCount": ("movements",),
}
"""The tables of which a field may read all rows for a page of them, or for a sum."""
