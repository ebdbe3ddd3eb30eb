"""Commands on a product, and the rules that decide them, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Context, Decimal
from fractions import Fraction

import attrs

from eventlog import Decider
from pantry.domain import ean13 as ean
from pantry.domain import product as p
from pantry.domain.errors import BadInput, Changed, InsufficientStock, NotFound, Taken, UndoneAlready, UndosMoved, UnitInUse
from pantry.domain.naming import look
from pantry.domain.product import (
    Details,
    MovementRecorded,
    MovementRefused,
    MovementType,
    Product,
    ProductEvent,
    StockConfirmed,
)
from pantry.domain.quantity import LARGEST, converted, text

SMALLEST_FACTOR, LARGEST_FACTOR = Decimal("0.000001"), Decimal(1_000_000)
"""The bounds of a factor between two units. It is a multiple of the smallest one."""
_LONGEST_SCALE = 100
_EXACT = Context(prec=2 * _LONGEST_SCALE)

# Commands (quantities are in thousandths)


@attrs.frozen(kw_only=True)
class CreateProduct:
    """A new product; its category, if it has one, is there."""

    ean13: str
    details: Details
    at: datetime


@attrs.frozen(kw_only=True)
class EditProduct:
    """Replace what is known of a product; `version` is the one that the caller has read, None for any.

    `factor` converts the stock: it is how many of the new unit one of the present unit is. `keeps_minimum`: the minimum is
    converted too, and is not the one of `details`.
    """

    ean13: str
    details: Details
    at: datetime
    version: int | None = None
    factor: Decimal | None = None
    keeps_minimum: bool = False


@attrs.frozen(kw_only=True)
class SetActive:
    """Deactivate a product, or activate it again."""

    ean13: str
    active: bool
    at: datetime
    version: int | None = None


@attrs.frozen(kw_only=True)
class RecordMovement:
    """Something goes in or out. `id` is a new one.

    `keeps_refusal`: if the stock does not allow it, that is recorded, and a repetition is refused in the same way. `unit`: the
    unit that the quantity is in, if the caller knows it.
    """

    id: str
    ean13: str
    type: MovementType
    quantity: int
    at: datetime
    reason: str = ""
    notes: str = ""
    created_by: str = ""
    keeps_refusal: bool = False
    unit: str | None = None


@attrs.frozen(kw_only=True)
class UndoMovement:
    """Make up for a movement by one of the opposite type.

    `type` and `quantity` belong to the movement `undoes`. `undone`: whether it had been undone before, as known when the product
    had had `undos` of them. `quantity` is in the unit with the scale `scale`.
    """

    id: str
    ean13: str
    undoes: str
    type: MovementType
    quantity: int
    undone: bool
    undos: int
    scale: str
    at: datetime
    reason: str = ""
    notes: str = ""
    created_by: str = ""


@attrs.frozen(kw_only=True)
class CountStock:
    """A stocktake found this amount: the difference is booked. `unit`: as in RecordMovement."""

    id: str
    ean13: str
    counted: int
    at: datetime
    reason: str = ""
    notes: str = ""
    created_by: str = ""
    unit: str | None = None


ProductCommand = CreateProduct | EditProduct | SetActive | RecordMovement | UndoMovement | CountStock


def decide(command: ProductCommand, state: Product | None) -> Sequence[ProductEvent]:
    """Return the events of a command.

    Raises BadInput, NotFound, Taken, Changed, InsufficientStock, UndoneAlready, UndosMoved, UnitInUse.
    """
    match command:
        case CreateProduct():
            return _create(command, state)
        case EditProduct():
            return _edit(command, state)
        case SetActive():
            return _set_active(command, state)
        case RecordMovement():
            return [_record(command, state)]
        case UndoMovement():
            return _undo(command, _existing(command.ean13, state))
        case CountStock():
            return _count(command, _existing(command.ean13, state))


def _create(command: CreateProduct, state: Product | None) -> Sequence[ProductEvent]:
    _check_product(command)
    if state is not None:
        raise Taken(f"there is a product {command.ean13} already")
    return [p.ProductCreated(ean13=command.ean13, details=command.details, at=command.at)]


def _edit(command: EditProduct, state: Product | None) -> Sequence[ProductEvent]:
    _check_product(command)
    product = _existing(command.ean13, state)
    _check_version(product, command.version)
    if command.details == product.details and command.factor is None:
        return []
    before, after = product.details.unit, command.details.unit
    if command.factor is not None:
        return [_convert(command, product, command.factor)]
    if product.moved and look(after) != look(before):
        raise UnitInUse(
            f"the product has movements in {before}: say with `factor` how many {after} 1 {before} is, or create another product"
        )
    return [p.ProductEdited(details=command.details, at=command.at)]


def _convert(command: EditProduct, product: Product, factor: Decimal) -> p.UnitChanged:
    """The change of the unit: the stock, and the minimum if it is kept, are the same quantities as before."""
    before, after = product.details.unit, command.details.unit
    if look(after) == look(before):
        raise UnitInUse(f"`factor` converts to another unit, and the unit is {before} already")
    if not SMALLEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise BadInput("factor", f"must be from {SMALLEST_FACTOR:f} to {LARGEST_FACTOR:f}")
    details = command.details
    if command.keeps_minimum:
        details = attrs.evolve(details, min_stock=in_unit(product.details.min_stock, Fraction(factor), before, after))
    scale = f"{_EXACT.multiply(Decimal(product.scale), factor).normalize(_EXACT):f}"
    if len(scale) > _LONGEST_SCALE:
        raise UnitInUse("the unit was changed too often for another factor: create another product")
    return p.UnitChanged(
        details=details,
        factor=f"{factor.normalize():f}",
        scale=scale,
        stock=in_unit(product.stock, Fraction(factor), before, after),
        at=command.at,
    )


def in_unit(quantity: int, factor: Fraction, before: str, after: str) -> int:
    """A quantity in another unit, of which `factor` are one of the unit before. Raises UnitInUse if it is not exact."""
    if (result := converted(quantity, factor)) is None:
        raise UnitInUse(f"{text(quantity)} {before} cannot be written in {after}, in thousandths up to {text(LARGEST)}")
    return result


def _set_active(command: SetActive, state: Product | None) -> Sequence[ProductEvent]:
    product = _existing(command.ean13, state)
    _check_version(product, command.version)
    if product.active == command.active:
        return []
    event = p.ProductActivated if command.active else p.ProductDeactivated
    return [event(details=product.details, at=command.at)]


def _record(command: RecordMovement, state: Product | None) -> MovementRecorded | MovementRefused:
    _check_movement(command)
    product = _existing(command.ean13, state)
    _check_unit(command, product)
    if command.keeps_refusal and refusal(command.type, command.quantity, product.stock) is not None:
        return MovementRefused(type=command.type, quantity=command.quantity, stock=product.stock, at=command.at)
    return _booked(command, product, command.type, command.quantity)


def _undo(command: UndoMovement, product: Product) -> Sequence[ProductEvent]:
    if command.undone:
        raise UndoneAlready(f"movement {command.undoes} has been undone already")
    if (command.undos, command.scale) != (product.undos, product.scale):
        raise UndosMoved
    return [_booked(command, product, command.type.opposite, command.quantity, reverses=command.undoes)]


def _count(command: CountStock, product: Product) -> Sequence[ProductEvent]:
    if not 0 <= command.counted <= LARGEST:
        raise BadInput("counted", f"must be from 0 to {text(LARGEST)}")
    _check_texts(command)
    _check_unit(command, product)
    difference = command.counted - product.stock
    if difference:
        type_ = MovementType.IN if difference > 0 else MovementType.OUT
        return [_booked(command, product, type_, abs(difference), counted=command.counted)]
    return [
        StockConfirmed(
            counted=command.counted,
            unit=product.details.unit,
            reason=command.reason,
            notes=command.notes,
            created_by=command.created_by,
            at=command.at,
        )
    ]


def _booked(
    command: RecordMovement | UndoMovement | CountStock,
    product: Product,
    type_: MovementType,
    quantity: int,
    *,
    reverses: str | None = None,
    counted: int | None = None,
) -> MovementRecorded:
    """The movement, where the stock allows it."""
    if (refused := refusal(type_, quantity, product.stock)) is not None:
        raise refused
    return MovementRecorded(
        id=command.id,
        type=type_,
        quantity=quantity,
        stock=product.stock + (quantity if type_ is MovementType.IN else -quantity),
        reason=command.reason,
        notes=command.notes,
        created_by=command.created_by,
        at=command.at,
        unit=product.details.unit,
        reverses=reverses,
        counted=counted,
        scale=product.scale,
    )


def refusal(type_: MovementType, quantity: int, stock: int) -> BadInput | InsufficientStock | None:
    """Return why a movement is not possible with a stock, None if it is; in thousandths."""
    if type_ is MovementType.OUT and quantity > stock:
        return InsufficientStock(available=stock, requested=quantity)
    if type_ is MovementType.IN and stock + quantity > LARGEST:
        return BadInput("quantity", f"the stock would be more than {text(LARGEST)}")
    return None


def _existing(ean13: str, state: Product | None) -> Product:
    if state is None:
        raise NotFound(f"there is no product {ean13}")
    return state


def _check_version(product: Product, version: int | None) -> None:
    if version is not None and version != product.version:
        raise Changed(f"product {product.ean13} is in version {product.version}, not {version}")


def _check_product(command: CreateProduct | EditProduct) -> None:
    if (wrong := ean.problem(command.ean13)) is not None:
        raise BadInput("ean13", wrong)
    details = command.details
    if not look(details.name):
        raise BadInput("name", "product name cannot be empty")
    if not look(details.unit):
        raise BadInput("unit", "product unit cannot be empty")
    _check_length("name", details.name, p.NAME_LENGTH)
    _check_length("unit", details.unit, p.UNIT_LENGTH)
    if details.min_stock < 0:
        raise BadInput("min_stock", "min stock cannot be negative")
    if details.min_stock > LARGEST:
        raise BadInput("min_stock", f"must be at most {text(LARGEST)}")


def _check_movement(command: RecordMovement) -> None:
    if command.quantity <= 0:
        raise BadInput("quantity", "stock level must be greater than 0")
    if command.quantity > LARGEST:
        raise BadInput("quantity", f"must be at most {text(LARGEST)}")
    _check_texts(command)


def _check_unit(command: RecordMovement | CountStock, product: Product) -> None:
    if command.unit is not None and look(command.unit) != look(product.details.unit):
        raise UnitInUse(f"the product is kept in {product.details.unit}, not in {command.unit}")


def _check_texts(command: RecordMovement | CountStock) -> None:
    _check_length("reason", command.reason, p.REASON_LENGTH)
    _check_length("created_by", command.created_by, p.CREATED_BY_LENGTH)


def _check_length(field: str, value: str, longest: int) -> None:
    if len(value) > longest:
        raise BadInput(field, f"must have at most {longest} characters")


def confirm(command: ProductCommand, product: Product) -> p.NothingChanged:  # noqa: ARG001 - the shape of every decider
    """The event of a command without an effect."""
    return p.NothingChanged(at=command.at)


PRODUCT: Decider[Product, ProductCommand, ProductEvent] = Decider(p.CATEGORY, decide, p.evolve, confirm=confirm, initial=None)
