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
    STOCKTAKES,
)
from projections import Change, Delete, Projection, Put, ReadModel, SettingNames
from servicekit.access import TokenModel, with_tokens


def _category(commit: Commit) -> Iterable[Change]:
    return (Put(CATEGORIES, CATEGORIES.row(commit.state, sequence=commit.sequence)),)


def _product(commit: Commit) -> Iterable[Change]:
    state: Product = commit.state
    changes: list[Change] = []
    for event in commit.events:
        sequence, position = event.position.sequence, event.position.index
        match data := event.data:
            case MovementRecorded():
                row = MOVEMENTS.row(data, product_ean13=state.ean13, sequence=sequence, position=position, sealed=event.sealed)
                changes.append(Put(MOVEMENTS, row))
            case ProductCreated() | ProductEdited() | UnitChanged() | ProductActivated() | ProductDeactivated():
                active, stock = _after(commit, position)
                row = PRODUCT_VERSIONS.row(
                    data, ean13=state.ean13, sequence=sequence, position=position, active=active, stock=stock
                )
                changes.append(Put(PRODUCT_VERSIONS, row))
    changes.append(Put(PRODUCTS, PRODUCTS.row(state, sequence=commit.sequence)))
    return changes


def _person(commit: Commit) -> Iterable[Change]:
    return (Put(ERASURES, ERASURES.row(commit.state, sequence=commit.sequence)),)


def _barcode(commit: Commit) -> Iterable[Change]:
    state: barcode.Barcode = commit.state
    if state.ean13 is None:
        return (Delete(BARCODES, (state.code,)),)
    return (Put(BARCODES, BARCODES.row(state, sequence=commit.sequence)),)


_COUNTED, _NOT_COUNTED = b'"counted":', b'"counted":null'
"""The member of a movement that books a stocktake, and of every other one, as they are stored."""


def _stocktakes(commit: Commit) -> Iterable[Change]:
    if not commit.may_have("StockConfirmed") and commit.data.count(_COUNTED) == commit.data.count(_NOT_COUNTED):
        return  # most commits have none: their events are not decoded once more
    for event in commit.events:
        match data := event.data:
            case StockConfirmed() | MovementRecorded(counted=int()):
                place = {"sequence": event.position.sequence, "position": event.position.index}
                yield Put(STOCKTAKES, STOCKTAKES.row(data, product_ean13=commit.aggregate.id, **place, sealed=event.sealed))


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
