"""The plan of a take-over, made from the rows of the first program and the present ledger. Making a plan has no effect.

The first program let writers overtake each other: its stock can differ from the sum of its movements, and the sum can fall below
zero. The ledger takes each movement as it is. If the sum falls below zero, an earlier booking brings in the missing quantity. A
last booking makes the stock equal to the stored one. The report lists both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

import attrs

from pantry.domain import category as c
from pantry.domain import ean13, product
from pantry.domain.category_name import key_of
from pantry.domain.ledger import CreateProduct, ProductCommand, RecordMovement, SetActive
from pantry.domain.naming import look
from pantry.domain.product import Details, MovementType
from pantry.domain.quantity import LARGEST, text
from pantry.takeover.source import FormerCategory, FormerMovement, FormerProduct, SourceRows

OPENING = "take-over: was missing before this"
CORRECTION = "take-over: stock of the first program"
_ID = re.compile(r"[0-9a-f-]{36}")
_CATEGORY_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@attrs.frozen(kw_only=True)
class LedgerProduct:
    """A product in the ledger: its stock, the ids of its movements, and the sum of the bookings of earlier take-overs.

    `untouched`: a take-over has created it, and it has been neither deactivated nor activated since. `updated_at` is the time of
    its last event, None if it is not there.
    """

    stock: int = 0
    untouched: bool = True
    movements: frozenset[str] = frozenset()
    adjusted: int = 0
    updated_at: datetime | None = None


@attrs.frozen(kw_only=True)
class LedgerState:
    """The ledger: products by code, categories by id, and the ids of categories by the key of their name."""

    products: Mapping[str, LedgerProduct]
    categories: frozenset[str]
    names: Mapping[str, str]


@attrs.frozen
class Problem:
    """A row that is taken over otherwise than it is, or not at all."""

    row: str
    text: str
    left_out: bool = False


@attrs.frozen(kw_only=True)
class ProductPlan:
    """The commands on one product, in order, and its figures in thousandths.

    `stored` is the stock of the first program, `summed` the sum of its movements. `opening` and `correction` are booked now.
    """

    ean13: str
    commands: Sequence[ProductCommand]
    is_new: bool
    movements: int
    stored: int
    summed: int
    opening: int
    correction: int

    @property
    def differs(self) -> bool:
        """Whether the stock of the first program is not the sum of its movements."""
        return self.stored != self.summed


@attrs.frozen(kw_only=True)
class TakeOverPlan:
    """The steps of a take-over, and the rows that differ from theirs."""

    categories: Sequence[FormerCategory]
    products: Sequence[ProductPlan]
    problems: Sequence[Problem]


def plan_of(rows: SourceRows, state: LedgerState, now: datetime, *, keep_stock: bool = True) -> TakeOverPlan:
    """Return the plan. `keep_stock`: the stock that the first program shows is right, not the sum of its movements."""
    problems: list[Problem] = []
    categories, ids = _categories(rows.categories, state, problems)
    by_product: dict[str, list[FormerMovement]] = {}
    for movement in rows.movements:
        by_product.setdefault(movement.product_ean13, []).append(movement)
    known = {row.ean13 for row in rows.products}
    for code, movements in by_product.items():
        if code not in known:
            problems.append(Problem(f"product {code}", f"is missing: its {len(movements)} movements are left out", left_out=True))
    products = []
    for row in rows.products:
        wrong = ean13.problem(row.ean13)
        if wrong is not None:
            problems.append(Problem(f"product {row.ean13}", f"is left out: {wrong}", left_out=True))
            continue
        planned = _product(row, by_product.get(row.ean13, []), state.products.get(row.ean13), ids, now, problems, keep_stock)
        products.append(planned)
    return TakeOverPlan(categories=categories, products=products, problems=problems)


def _categories(
    rows: Sequence[FormerCategory], state: LedgerState, problems: list[Problem]
) -> tuple[Sequence[FormerCategory], Mapping[str, str]]:
    """Return the categories to be made, and the id here of each id there."""
    made: list[FormerCategory] = []
    ids: dict[str, str] = {}
    names = dict(state.names)
    for row in rows:
        name = row.name[: c.NAME_LENGTH] if look(row.name) else f"category {row.id[:8]}"
        if name != row.name:
            problems.append(Problem(f"category {row.id}", f"has no usable name: it is called {name!r}"))
        id_ = row.id if _CATEGORY_ID.fullmatch(row.id) else _version_4(f"pantry:category:{row.id}")
        if id_ != row.id and id_ not in state.categories:
            problems.append(Problem(f"category {row.id}", f"has an id other than a UUID of version 4: it gets {id_}"))
        if id_ in state.categories:
            ids[row.id] = id_
            continue
        holder = names.get(key_of(name))
        if holder is not None:
            problems.append(Problem(f"category {row.id}", f"has the name {name!r} of the category {holder}: they become one"))
            ids[row.id] = holder
            continue
        names[key_of(name)] = ids[row.id] = id_
        made.append(attrs.evolve(row, id=id_, name=name))
    return made, ids


def _product(
    row: FormerProduct,
    movements: Sequence[FormerMovement],
    known: LedgerProduct | None,
    categories: Mapping[str, str],
    now: datetime,
    problems: list[Problem],
    keep_stock: bool,  # noqa: FBT001 - a private function
) -> ProductPlan:
    named = f"product {row.ean13}"
    present = known or LedgerProduct()
    left = [_booked(movement, problems) for movement in movements]
    left = [movement for movement in left if movement.id not in present.movements]
    commands: list[ProductCommand] = []
    if known is None:
        first = min([row.created_at, *(movement.created_at for movement in left[:1])])
        if first != row.created_at:
            problems.append(Problem(named, f"has a movement before it was created: it was created at {first.isoformat()}"))
        commands.append(CreateProduct(ean13=row.ean13, details=_details(row, categories, problems), at=first))
    opening = max(0, -_lowest(present.stock, left))
    if opening:
        commands.append(_adjustment(row.ean13, opening, OPENING, left[0].id, left[0].created_at))
        problems.append(
            Problem(named, f"had less than nothing: {text(opening)} are booked in at {left[0].created_at.isoformat()}")
        )
    commands += [_movement(movement) for movement in left]
    summed = sum(movement.change for movement in movements)
    correction = 0
    if keep_stock:
        correction = row.current_stock - summed - present.adjusted - opening
        stock = present.stock + opening + sum(movement.change for movement in left)
        correction = max(correction, -stock)  # what was booked here since may have taken it out
    if correction:
        last = left[-1].id if left else f"{present.adjusted}"
        commands.append(_adjustment(row.ean13, correction, CORRECTION, f"{last}:{row.current_stock}", now))
    if present.untouched and not row.active:
        commands.append(SetActive(ean13=row.ean13, active=False, at=row.updated_at))
    return ProductPlan(
        ean13=row.ean13,
        commands=_in_order(commands, present.updated_at, now),
        is_new=known is None,
        movements=len(left),
        stored=row.current_stock,
        summed=summed,
        opening=opening,
        correction=correction,
    )


def _in_order(commands: Sequence[ProductCommand], updated_at: datetime | None, now: datetime) -> Sequence[ProductCommand]:
    """The commands with times that do not go back, from the last event of the product on, as their order in the log is."""
    ordered: list[ProductCommand] = []
    latest = None if updated_at is None else min(updated_at, now)
    for command in commands:
        latest = command.at if latest is None else max(command.at, latest)
        ordered.append(attrs.evolve(command, at=latest))
    return ordered


def _lowest(stock: int, movements: Sequence[FormerMovement]) -> int:
    """The lowest stock at any time."""
    lowest = 0
    for movement in movements:
        stock += movement.change
        lowest = min(lowest, stock)
    return lowest


def _details(row: FormerProduct, categories: Mapping[str, str], problems: list[Problem]) -> Details:
    named = f"product {row.ean13}"
    name, unit = row.name[: product.NAME_LENGTH], row.unit[: product.UNIT_LENGTH]
    if not look(name):
        name = row.ean13
        problems.append(Problem(named, f"has no name: it is called {name}"))
    if not look(unit):
        unit = "piece"
        problems.append(Problem(named, "has no unit: it is counted in pieces"))
    if row.category_id and row.category_id not in categories:
        problems.append(Problem(named, f"is in the category {row.category_id}, which is missing: it has none"))
    if row.min_stock < 0:
        problems.append(Problem(named, f"has the minimum {text(row.min_stock)}: it becomes 0"))
    category = categories.get(row.category_id)
    least = min(max(row.min_stock, 0), LARGEST)
    return Details(name=name, description=row.description, unit=unit, min_stock=least, category_id=category)


def ledger_id(movement: FormerMovement) -> str:
    """Return the id that a movement has in the ledger."""
    return movement.id if _ID.fullmatch(movement.id) else _version_4(f"pantry:movement:{movement.id}")


def _booked(movement: FormerMovement, problems: list[Problem]) -> FormerMovement:
    """The movement with an id that the ledger can have."""
    id_ = ledger_id(movement)
    if id_ != movement.id:
        problems.append(Problem(f"movement {movement.id}", f"has an id other than a UUID: it gets {id_}"))
    return attrs.evolve(movement, id=id_)


def _movement(row: FormerMovement) -> RecordMovement:
    return RecordMovement(
        id=row.id,
        ean13=row.product_ean13,
        type=MovementType(row.type),
        quantity=row.quantity,
        at=row.created_at,
        reason=row.reason[: product.REASON_LENGTH],
        notes=row.notes,
        created_by=row.created_by[: product.CREATED_BY_LENGTH],
    )


def _adjustment(code: str, change: int, reason: str, seed: str, at: datetime) -> RecordMovement:
    type_ = MovementType.IN if change > 0 else MovementType.OUT
    id_ = _version_4(f"pantry:{reason}:{code}:{seed}")
    return RecordMovement(id=id_, ean13=code, type=type_, quantity=abs(change), at=at, reason=reason)


def _version_4(name: str) -> str:
    """A UUID that follows from a name, in the form of version 4 that all ids here have."""
    digits = uuid5(NAMESPACE_URL, name).hex
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{digits[16:20]}-{digits[20:]}"
