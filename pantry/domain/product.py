"""The aggregate of a product: its description and its stock, which only movements change."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from eventlog import personal
from pantry.domain.registry import REGISTRY

CATEGORY = "pantry.product"
NAME_LENGTH = 200
UNIT_LENGTH = 30
REASON_LENGTH = 200
CREATED_BY_LENGTH = 100
CATEGORY_ID_LENGTH = 36
PERSONAL = personal(of="created_by")
"""The author and the notes of a movement can be erased for that person (`eventlog.privacy`)."""


class MovementType(StrEnum):
    """Into the stock, or out of it."""

    IN = "in"
    OUT = "out"

    @property
    def opposite(self) -> MovementType:
        """The type of the movement that makes up for one of this type."""
        return MovementType.OUT if self is MovementType.IN else MovementType.IN


@attrs.frozen(kw_only=True)
class Details:
    """The details of a product without its stock; `min_stock` in thousandths."""

    name: str
    description: str
    unit: str
    min_stock: int
    category_id: str | None


# Events (quantities are in thousandths)


@REGISTRY.event("ProductCreated")
@attrs.frozen(kw_only=True)
class ProductCreated:
    """There is a new product, without stock."""

    ean13: str
    details: Details
    at: datetime


@REGISTRY.event("ProductEdited")
@attrs.frozen(kw_only=True)
class ProductEdited:
    """The details of the product have changed; its stock is the same."""

    details: Details
    at: datetime


@REGISTRY.event("UnitChanged")
@attrs.frozen(kw_only=True)
class UnitChanged:
    """The product is kept in another unit. `factor`: how many of it one of the unit before is; `stock` is the stock in it.

    `scale` is the product of all factors so far.
    """

    details: Details
    factor: str
    scale: str
    stock: int
    at: datetime


@REGISTRY.event("ProductDeactivated")
@attrs.frozen(kw_only=True)
class ProductDeactivated:
    """The product is not kept any more. The details are as they were, so that each version of a product is in one event."""

    details: Details
    at: datetime


@REGISTRY.event("ProductActivated")
@attrs.frozen(kw_only=True)
class ProductActivated:
    """The product is kept again. The details are as they were."""

    details: Details
    at: datetime


@REGISTRY.event("MovementRecorded")
@attrs.frozen(kw_only=True)
class MovementRecorded:
    """Something went in or out; `stock` is what is there then.

    `reverses` is the movement that this one undoes, `counted` the amount that a stocktake found. The quantities are in `unit`, of
    which one of the product's first unit is `scale`.
    """

    id: str
    type: MovementType
    quantity: int
    stock: int
    reason: str
    notes: str = attrs.field(metadata=PERSONAL)
    created_by: str = attrs.field(metadata=PERSONAL)
    at: datetime
    unit: str
    reverses: str | None = None
    counted: int | None = None
    scale: str = "1"


@REGISTRY.event("StockConfirmed")
@attrs.frozen(kw_only=True)
class StockConfirmed:
    """A stocktake found what was expected."""

    counted: int
    unit: str
    reason: str
    notes: str = attrs.field(metadata=PERSONAL)
    created_by: str = attrs.field(metadata=PERSONAL)
    at: datetime


@REGISTRY.event("MovementRefused")
@attrs.frozen(kw_only=True)
class MovementRefused:
    """The stock did not allow a movement of an import; recorded for the idempotency key of the row."""

    type: MovementType
    quantity: int
    stock: int
    at: datetime


@REGISTRY.event("NothingChanged")
@attrs.frozen(kw_only=True)
class NothingChanged:
    """The product already had the requested state; recorded for the idempotency key of the request."""

    at: datetime


ProductEvent = (
    ProductCreated
    | ProductEdited
    | UnitChanged
    | ProductDeactivated
    | ProductActivated
    | MovementRecorded
    | StockConfirmed
    | MovementRefused
    | NothingChanged
)


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Product:
    """A product.

    `version` counts the events that made it another, `undos` its movements that undid another one. `moved`: whether it has
    movements; `counted_at`: last stocktake. `scale`: how many of its unit one of its first unit is.
    """

    ean13: str
    details: Details
    created_at: datetime
    updated_at: datetime
    stock: int = 0
    active: bool = True
    version: int = 1
    undos: int = 0
    moved: bool = False
    counted_at: datetime | None = None
    scale: str = "1"

    @property
    def is_low(self) -> bool:
        """Whether the stock has come down to the minimum."""
        return self.stock <= self.details.min_stock


def evolve(state: Product | None, event: ProductEvent) -> Product:
    """The product after an event."""
    if isinstance(event, ProductCreated):
        return Product(ean13=event.ean13, details=event.details, created_at=event.at, updated_at=event.at)
    assert state is not None, "a product begins with ProductCreated"
    if isinstance(event, MovementRecorded):
        return _moved(state, event)
    if isinstance(event, MovementRefused | NothingChanged):
        return state
    product = attrs.evolve(state, updated_at=event.at, version=state.version + 1)
    match event:
        case ProductEdited():
            return attrs.evolve(product, details=event.details)
        case UnitChanged():
            return attrs.evolve(product, details=event.details, stock=event.stock, scale=event.scale)
        case ProductDeactivated():
            return attrs.evolve(product, active=False)
        case ProductActivated():
            return attrs.evolve(product, active=True)
        case StockConfirmed():
            return attrs.evolve(product, counted_at=event.at)


def _moved(state: Product, movement: MovementRecorded) -> Product:
    """The product after a movement, every field named: `attrs.evolve` costs three times more, and this is called most."""
    return Product(
        ean13=state.ean13,
        details=state.details,
        created_at=state.created_at,
        updated_at=movement.at,
        stock=movement.stock,
        active=state.active,
        version=state.version + 1,
        undos=state.undos + (movement.reverses is not None),
        moved=True,
        counted_at=state.counted_at if movement.counted is None else movement.at,
        scale=state.scale,
    )
