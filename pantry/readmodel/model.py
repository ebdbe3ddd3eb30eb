"""Which rows a commit on the stream PANTRY puts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from eventlog import Commit
from pantry.domain import barcode, category, category_name, ledger, person, product
from pantry.domain.product import (
    MovementRecorded,
    MovementType,
    Product,
    ProductActivated,
    ProductCreated,
    ProductDeactivated,
    ProductEdited,
    StockConfirmed,
    UnitChanged,
)
from pantry.domain.registry import REGISTRY
from pantry.readmodel.tables import (
    BARCODES,
    CATEGORIES,
    ERASURES,
    MOVEMENTS,
    PRODUCT_VERSIONS,
    PRODUCTS,
    STOCKS,
    STOCKTAKES,
    barcode_row,
    category_row,
    erasure_row,
    movement_row,
    product_row,
    stocktake_row,
    version_row,
)
from projections import Change, Delete, Projection, Put, ReadModel, SettingNames
from servicekit.access import TokenModel, with_tokens


def _category(commit: Commit) -> Iterable[Change]:
    return (Put(CATEGORIES, category_row(commit.state, commit.sequence)),)


def _product(commit: Commit) -> Iterable[Change]:
    state: Product = commit.state
    changes: list[Change] = []
    products = STOCKS
    for event in commit.events:
        place = (commit.sequence, event.position.index)
        match data := event.data:
            case MovementRecorded():
                changes.append(Put(MOVEMENTS, movement_row(state.ean13, data, place, event.sealed)))
            case ProductCreated() | ProductEdited() | UnitChanged() | ProductActivated() | ProductDeactivated():
                products = PRODUCTS
                active, stock = _after(commit, event.position.index)
                row = version_row(state.ean13, data.details, data.at, place, active=active, stock=stock)
                changes.append(Put(PRODUCT_VERSIONS, row))
    changes.append(Put(products, product_row(state, commit.sequence)))
    return changes


def _person(commit: Commit) -> Iterable[Change]:
    return (Put(ERASURES, erasure_row(commit.state, commit.sequence)),)


def _barcode(commit: Commit) -> Iterable[Change]:
    state: barcode.Barcode = commit.state
    if state.ean13 is None:
        return (Delete(BARCODES, (state.code,)),)
    return (Put(BARCODES, barcode_row(state, commit.sequence)),)


_COUNTED, _NOT_COUNTED = b'"counted":', b'"counted":null'
"""The member of a movement that books a stocktake, and of every other one, as they are stored."""


def _stocktakes(commit: Commit) -> Iterable[Change]:
    if not commit.may_have("StockConfirmed") and commit.data.count(_COUNTED) == commit.data.count(_NOT_COUNTED):
        return  # most commits have none: their events are not decoded once more
    for event in commit.events:
        match data := event.data:
            case StockConfirmed() | MovementRecorded(counted=int()):
                place = (commit.sequence, event.position.index)
                yield Put(STOCKTAKES, stocktake_row(commit.aggregate.id, data, place, event.sealed))


def _after(commit: Commit, index: int) -> tuple[bool, int]:
    """Whether the product was active after an event, and its stock then: the state, without the events after that one."""
    state: Product = commit.state
    active, stock = state.active, state.stock
    for event in reversed(commit.events[index + 1 :]):
        match data := event.data:
            case ProductActivated() | ProductDeactivated():
                active = isinstance(data, ProductDeactivated)
            case MovementRecorded():
                stock = data.stock - (data.quantity if data.type is MovementType.IN else -data.quantity)
            case UnitChanged():
                stock = int(data.stock / Fraction(data.factor))
    return active, stock


ACCESS = TokenModel.of("pantry")
"""The tokens of the pantry."""

_MODEL = ReadModel(
    name="pantry",
    stream="PANTRY",
    registry=REGISTRY,
    projections=(
        Projection(
            "ledger",
            1,
            (CATEGORIES, PRODUCTS, PRODUCT_VERSIONS, MOVEMENTS),
            {category.CATEGORY_CATEGORY: _category, product.CATEGORY: _product},
        ),
        Projection("barcodes", 1, (BARCODES,), {barcode.CATEGORY: _barcode}, latest=frozenset({barcode.CATEGORY})),
        Projection("stocktakes", 1, (STOCKTAKES,), {product.CATEGORY: _stocktakes}),
        Projection("erasures", 1, (ERASURES,), {person.CATEGORY: _person}, latest=frozenset({person.CATEGORY})),
    ),
    migrations="pantry.readmodel.migrations",
    folds={
        decider.category: decider.fold
        for decider in (barcode.BARCODE, category.CATEGORY, category_name.CATEGORY_NAME, ledger.PRODUCT, person.PERSON)
    },
    settings=SettingNames(prefix="PANTRY", database="database.url"),
)
MODEL = with_tokens(_MODEL, ACCESS)
