"""The function `pantry`: products, categories, movements, the stock at any time, reports; stock and minimum as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import attrs
import msgspec
from graphql import GraphQLResolveInfo

from graphql_fn.core.function import Function
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.asking import Asking, sizes_of
from graphql_fn.readmodels.binding import bound
from graphql_fn.readmodels.following import followed
from graphql_fn.readmodels.pantry.fields import RESOLVERS, SCANS
from httpkit import Frame
from pantry.domain.product import MovementRecorded, Product
from pantry.readmodel import MODEL
from pantry.readmodel.changes import DECIDERS, crosses_minimum, edits
from pantry.readmodel.graph import PantryGraph
from pantry.readmodel.views import CategoryView, MovementView, ProductView
from servicekit import Broker, CommitFrames, EventChange, ReadReplica

Info: TypeAlias = "GraphQLResolveInfo[Asking[PantryGraph]]"

STOCK, LOW_STOCK = "stock", "low_stock"


@attrs.frozen
class StockChange:
    """The payload of `stockChanged`."""

    product: ProductView
    movement: MovementView


@attrs.frozen
class LowStockChange:
    """The payload of `lowStockChanged`."""

    product: ProductView


# Events


def frames(log: Any) -> CommitFrames:
    """The frames of the pantry's commits, for `following`. A place has twice the index of the event, which may make two."""
    return CommitFrames(log, DECIDERS, _frames, needs_previous_state=edits)


def _frames(happened: EventChange) -> Iterable[Frame]:
    product, event = happened.after, happened.event.data
    if not isinstance(product, Product):
        return
    position = msgspec.structs.replace(happened.event.position, index=2 * happened.event.position.index)
    view = ProductView.of_state(product)
    if isinstance(event, MovementRecorded):
        change = StockChange(view, MovementView.of_event(product.ean13, event))
        yield Frame(position, STOCK, msgspec.json.encode(change))
        position = msgspec.structs.replace(position, index=position.index + 1)
    if crosses_minimum(happened.before, event, product):
        yield Frame(position, LOW_STOCK, msgspec.json.encode(LowStockChange(view)))


def _changes(name: str, kind: type, _: Any, info: Info, ean13: Sequence[str] | None = None) -> AsyncIterator[SubscriptionEvent]:
    codes = None if ean13 is None else frozenset(ean13)
    return followed(info.context, name, kind, lambda change: codes is None or change.product.ean13 in codes)


_SOURCES = {
    "stockChanged": partial(_changes, STOCK, StockChange),
    "lowStockChanged": partial(_changes, LOW_STOCK, LowStockChange),
}

SCHEMA = bound(
    "pantry/pantry.graphql",
    RESOLVERS,
    _SOURCES,
    lists={
        "Product": "Product",
        "Category": "Category",
        "Movement": "Movement",
        "Consumption": "Consumption",
        "Shopping": "ShoppingItem",
    },
    nodes={ProductView: "Product", CategoryView: "Category", MovementView: "Movement"},
)


def replica(url: str, broker: Broker | None, *, max_lag: float) -> ReadReplica:
    """The read model in a database, and its events if there is a broker."""
    return ReadReplica(url, MODEL, connection=broker, frames=frames, max_lag=max_lag)


def function(replica: ReadReplica) -> Function:
    """The function over a read model."""
    return Function(
        name=MODEL.name,
        schema=SCHEMA,
        context=lambda request: Asking(replica, PantryGraph, request),
        scans=SCANS,
        rows=lambda: sizes_of(replica),
    )
