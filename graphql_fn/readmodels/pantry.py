"""The function `pantry`: products, categories, movements, the stock at any time, reports; stock and minimum as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

import attrs
import msgspec
from graphql import GraphQLResolveInfo

from graphql_fn.core.errors import PublicError
from graphql_fn.core.function import Function
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.asking import Asking, sizes_of
from graphql_fn.readmodels.binding import Resolver, attribute, bound
from graphql_fn.readmodels.connections import Connection, connection, of_list, part_of
from graphql_fn.readmodels.following import followed
from httpkit.sse.frames import Frame
from pantry.domain.errors import BadInput
from pantry.domain.product import MovementRecorded, Product
from pantry.domain.quantity import number
from pantry.readmodel import MODEL
from pantry.readmodel.changes import DECIDERS, crosses_minimum, edits
from pantry.readmodel.graph import PantryGraph, StockCount, category_key, movement_key, product_key
from pantry.readmodel.queries import PantryQueries
from pantry.readmodel.tables import name_key
from pantry.readmodel.views import CategoryView, ConsumptionView, MovementView, ProductView, days_of, period_of
from servicekit.feed import CommitFrames, EventChange
from servicekit.replica import Broker, ReadReplica

Info: TypeAlias = "GraphQLResolveInfo[Asking[PantryGraph]]"

STOCK, LOW_STOCK = "stock", "low_stock"
_BY_NAME = tuple[str, str]
_BY_TIME = tuple[str, int, int]


@attrs.frozen
class StockChange:
    """The payload of `stockChanged`."""

    product: ProductView
    movement: MovementView


@attrs.frozen
class LowStockChange:
    """The payload of `lowStockChanged`."""

    product: ProductView


@attrs.frozen
class _Consumption:
    """Consumption of a product in a number of days."""

    of: ConsumptionView
    days: float


async def _product(_: Any, info: Info, ean13: str, as_of: datetime | None = None) -> ProductView | None:
    found: ProductView | None = await info.context.load(PantryGraph.products_by_code, ean13, as_of)
    return found


async def _products(
    _: Any,
    info: Info,
    *,
    category: str | None = None,
    active: bool | None = None,
    low_stock: bool | None = None,
    search: str | None = None,
    as_of: datetime | None = None,
    **page: Any,
) -> Connection[ProductView]:
    part = part_of(_BY_NAME, **page)
    queries = await info.context.queries()
    found = await queries.products(
        part,
        category=category,
        active=active,
        low_stock=low_stock,
        search=name_key(search) if search else None,
        as_of=as_of,
    )
    return connection(found, part, product_key)


async def _category(_: Any, info: Info, id: str) -> CategoryView | None:  # noqa: A002 - the argument's name in the schema
    found: CategoryView | None = await info.context.load(PantryGraph.categories_by_id, id)
    return found


async def _categories(_: Any, info: Info, **page: Any) -> Connection[CategoryView]:
    part = part_of(_BY_NAME, **page)
    return connection(await (await info.context.queries()).categories(part), part, category_key)


async def _movement(_: Any, info: Info, id: str) -> MovementView | None:  # noqa: A002 - the argument's name in the schema
    found: MovementView | None = await info.context.load(PantryGraph.movements_by_id, id)
    return found


async def _movements(_: Any, info: Info, **given: Any) -> Connection[MovementView]:
    names = {"ean13": "ean13", "type": "type", "from": "since", "to": "until"}
    conditions = {ours: given.pop(name, None) for name, ours in names.items()}
    part = part_of(_BY_TIME, **given)
    return connection(await (await info.context.queries()).movements(part, **conditions), part, movement_key)


async def _stock_report(_: Any, info: Info, as_of: datetime | None = None) -> StockCount:
    return await (await info.context.queries()).report(as_of=as_of)


async def _consumption(_: Any, info: Info, ean13: str | None = None, category: str | None = None, **given: Any) -> Any:
    try:
        since, until = period_of(given.pop("from", None), given.pop("to", None))
    except BadInput as error:
        raise PublicError(str(error)) from None
    queries = PantryQueries(await info.context.database())
    found = await queries.consumption(since=since, until=until, ean13=ean13, category=category)
    days = days_of(since, until)
    return of_list([_Consumption(item, days) for item in found], **given)


async def _shopping_list(_: Any, info: Info, category: str | None = None, **page: Any) -> Any:
    since, until = period_of(None, None)
    queries = PantryQueries(await info.context.database())
    found = await queries.consumption(since=since, until=until, category=category)
    return of_list([item for item in found if item.is_to_buy], **page)


async def _category_of(product: ProductView, info: Info) -> CategoryView | None:
    return None if product.category_id is None else await info.context.load(PantryGraph.categories_by_id, product.category_id)


async def _movements_of(product: ProductView, info: Info, **page: Any) -> Connection[MovementView]:
    part = part_of(_BY_TIME, **page)
    return connection(await info.context.load(PantryGraph.movements_of, product.ean13, part), part, movement_key)


async def _products_of(category: CategoryView, info: Info, **page: Any) -> Connection[ProductView]:
    part = part_of(_BY_NAME, **page)
    return connection(await info.context.load(PantryGraph.products_of, category.id, part), part, product_key)


async def _stock_of(product: ProductView, info: Info, as_of: datetime) -> float:
    return number(await info.context.load(PantryGraph.stock_at, product.ean13, as_of) or 0)


def _product_of(name: str) -> Resolver:
    """The product with the code that an attribute has."""
    code = attribute(name)
    return lambda source, info: info.context.load(PantryGraph.products_by_code, code(source, info), None)


def _other_movement(name: str) -> Resolver:
    """The movement with the id that an attribute has, if it has one."""
    id_of = attribute(name)

    def resolve(source: MovementView, info: Info) -> Any:
        other = id_of(source, info)
        return None if other is None else info.context.load(PantryGraph.movements_by_id, other)

    return resolve


def _quantity(name: str) -> Resolver:
    """An attribute in thousandths as a number."""
    get = attribute(name)

    def resolve(source: Any, info: Any) -> float | None:
        value = get(source, info)
        return None if value is None else number(value)

    return resolve


def _worked_out(make: Callable[[_Consumption], Any]) -> Resolver:
    return lambda source, _info: make(source)


_RESOLVERS: dict[str, Resolver] = {
    "Query.product": _product,
    "Query.products": _products,
    "Query.category": _category,
    "Query.categories": _categories,
    "Query.movement": _movement,
    "Query.movements": _movements,
    "Query.stockReport": _stock_report,
    "Query.consumption": _consumption,
    "Query.shoppingList": _shopping_list,
    "Product.minStock": _quantity("min_stock"),
    "Product.currentStock": _quantity("current_stock"),
    "Product.isLowStock": attribute("is_low"),
    "Product.category": _category_of,
    "Product.stock": _stock_of,
    "Product.movements": _movements_of,
    "Category.products": _products_of,
    "Movement.product": _product_of("product_ean13"),
    "Movement.ean13": attribute("product_ean13"),
    "Movement.quantity": _quantity("quantity"),
    "Movement.stockAfter": _quantity("stock_after"),
    "Movement.reverses": _other_movement("reverses"),
    "Movement.reversedBy": _other_movement("reversed_by"),
    "Movement.counted": _quantity("counted"),
    "Consumption.product": _product_of("of.ean13"),
    "Consumption.ean13": attribute("of.ean13"),
    "Consumption.name": attribute("of.name"),
    "Consumption.unit": attribute("of.unit"),
    "Consumption.in": _quantity("of.total_in"),
    "Consumption.out": _quantity("of.total_out"),
    "Consumption.net": _worked_out(lambda item: number(item.of.total_in - item.of.total_out)),
    "Consumption.perDay": _worked_out(lambda item: item.of.per_day(item.days)),
    "Consumption.currentStock": _quantity("of.current_stock"),
    "Consumption.daysLeft": _worked_out(lambda item: item.of.days_left(item.days)),
    "ShoppingItem.product": _product_of("ean13"),
    "ShoppingItem.currentStock": _quantity("current_stock"),
    "ShoppingItem.minStock": _quantity("min_stock"),
    "ShoppingItem.suggested": _quantity("suggested"),
    "LowStockChange.isLowStock": attribute("product.is_low"),
}


_SCANS = {
    "Query.products": ("products",),
    "Query.movements": ("movements",),
    "Query.stockReport": ("products",),
    "Query.consumption": ("products", "movements"),
    "Query.shoppingList": ("products", "movements"),
}
"""The tables of which a field may read all rows for a page of them, or for a sum."""


# Events


def frames(log: Any) -> CommitFrames:
    """The frames of the pantry's commits, for `following`. A place has twice the index of the event, which may make two."""
    return CommitFrames(log, DECIDERS, _frames, needs_previous_state=edits)


def _frames(happened: EventChange) -> Iterable[Frame]:
    product, event = happened.after, happened.event.data
    if not isinstance(product, Product):
        return
    position = attrs.evolve(happened.event.position, index=2 * happened.event.position.index)
    view = ProductView.of_state(product)
    if isinstance(event, MovementRecorded):
        change = StockChange(view, MovementView.of_event(product.ean13, event))
        yield Frame(position, STOCK, msgspec.json.encode(change))
        position = attrs.evolve(position, index=position.index + 1)
    if crosses_minimum(happened.before, event, product):
        yield Frame(position, LOW_STOCK, msgspec.json.encode(LowStockChange(view)))


def _changes(name: str, kind: type, _: Any, info: Info, ean13: Sequence[str] | None = None) -> AsyncIterator[SubscriptionEvent]:
    codes = None if ean13 is None else frozenset(ean13)
    return followed(info.context, name, kind, lambda change: codes is None or change.product.ean13 in codes)


_SOURCES = {
    "stockChanged": partial(_changes, STOCK, StockChange),
    "lowStockChanged": partial(_changes, LOW_STOCK, LowStockChange),
}

SCHEMA = bound("pantry.graphql", _RESOLVERS, _SOURCES)


def onlooker(url: str, broker: Broker | None, *, max_lag: float) -> ReadReplica:
    """The read model in a database, and its events if there is a broker."""
    return ReadReplica(url, MODEL, connection=broker, frames=frames, max_lag=max_lag)


def function(onlooker: ReadReplica) -> Function:
    """The function over a read model."""
    return Function(
        name=MODEL.name,
        schema=SCHEMA,
        context=lambda request: Asking(onlooker, PantryGraph, request),
        scans=_SCANS,
        rows=lambda: sizes_of(onlooker),
    )
