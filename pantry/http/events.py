"""The events that clients follow: the stock, crossings of the minimum in both directions, and products as they are edited.

A frame's place in the log is the sequence of its commit and, since an event may make two of them, twice the index of the event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

from eventlog import Position
from httpkit import OF_EVERY_STREAM, Call, Frame, Route, encode, member, message, query
from pantry.domain.barcode import Barcode
from pantry.domain.category import Category
from pantry.domain.product import MovementRecorded, MovementRefused, NothingChanged, Product, StockConfirmed
from pantry.domain.quantity import number
from pantry.http.bodies import CategoryBody, MovementBody, ProductBody
from pantry.http.services import Services
from pantry.readmodel.changes import crosses_minimum
from pantry.readmodel.views import CategoryView, MovementView, ProductView
from servicekit import EventChange

NAMES = ("stock", "low_stock", "product", "category", "code")


@message
class StockEvent:
    """The stock of a product has changed."""

    ean13: str = member()
    name: str = member()
    unit: str = member()
    current_stock: float = member()
    min_stock: float = member()
    is_low_stock: bool = member()
    movement: MovementBody = member()


@message
class LowStockEvent:
    """A product has come down to its minimum, or has more than that again."""

    ean13: str = member()
    name: str = member()
    unit: str = member()
    current_stock: float = member()
    min_stock: float = member()
    is_low_stock: bool = member(description="true: it is low now; false: it is not any more")


@message
class CodeEvent:
    """A code names a product from now on, or none."""

    code: str = member()
    product_ean13: str | None = member(description="null: the code is free")
    factor: float = member(description="the quantity of the product that the code stands for")


@message
class Follow:
    """Which events to follow."""

    events: str | None = query(
        default=None,
        pattern=f"^({'|'.join(NAMES)})(,({'|'.join(NAMES)}))*$",
        form=f"one or more of {', '.join(NAMES)}, with commas between",
        max_length=100,
        example="stock,low_stock",
    )


async def follow_events(request: Follow, call: Call[Services]) -> web.StreamResponse:
    """The events of the pantry, live. `Last-Event-ID` resumes after an event: each one once, in order."""
    only = None if request.events is None else frozenset(request.events.split(","))
    return await call.services.follow(call, only=only)


def show(change: EventChange) -> Iterable[Frame]:
    """The frames of an event."""
    for place, (name, body) in enumerate(_shown(change)):
        position = Position(change.sequence, 2 * change.event.position.index + place)
        yield Frame(position, name, encode(body))


def _shown(change: EventChange) -> Iterator[tuple[str, object]]:
    state, event = change.after, change.event.data
    if isinstance(state, Category):
        yield "category", CategoryBody.of(CategoryView.of_state(state))
    elif isinstance(state, Barcode):
        if state.ean13 != state.code:
            yield "code", CodeEvent(code=state.code, product_ean13=state.ean13, factor=number(state.factor))
    elif isinstance(state, Product):
        if isinstance(event, MovementRecorded):
            yield "stock", _stock(state, event)
        elif not isinstance(event, StockConfirmed | MovementRefused | NothingChanged):
            yield "product", ProductBody.of(ProductView.of_state(state))
        if crosses_minimum(change.before, event, state):
            yield "low_stock", _low_stock(state)


def _stock(state: Product, event: MovementRecorded) -> StockEvent:
    return StockEvent(
        ean13=state.ean13,
        name=state.details.name,
        unit=state.details.unit,
        current_stock=number(state.stock),
        min_stock=number(state.details.min_stock),
        is_low_stock=state.is_low,
        movement=MovementBody.of(MovementView.of_event(state.ean13, event)),
    )


def _low_stock(state: Product) -> LowStockEvent:
    return LowStockEvent(
        ean13=state.ean13,
        name=state.details.name,
        unit=state.details.unit,
        current_stock=number(state.stock),
        min_stock=number(state.details.min_stock),
        is_low_stock=state.is_low,
    )


_EVENTS: dict[str, Any] = {
    "stock": StockEvent,
    "low_stock": LowStockEvent,
    "product": ProductBody,
    "category": CategoryBody,
    "code": CodeEvent,
    **OF_EVERY_STREAM,
}

ROUTES = (Route("GET", "/api/v1/events", follow_events, summary="Follow the events", tags=("events",), events=_EVENTS),)
