"""Carrying out a plan: the state of the ledger is read from the log, and the commands of the plan are appended to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import attrs

from eventlog import Commands, CommandStep, Context, EventLog
from pantry.domain import category, product
from pantry.domain.barcode import BARCODE, AssignBarcode
from pantry.domain.category import CATEGORY, Category, CreateCategory
from pantry.domain.category_name import CATEGORY_NAME, ReserveName, key_of
from pantry.domain.errors import PantryError
from pantry.domain.ledger import PRODUCT, CreateProduct
from pantry.domain.product import (
    MovementRecorded,
    MovementType,
    Product,
    ProductActivated,
    ProductCreated,
    ProductDeactivated,
)
from pantry.takeover.plan import LedgerProduct, LedgerState, Problem, ProductPlan, TakeOverPlan, ledger_id
from pantry.takeover.source import SourceRows

ACTOR = "take-over"
"""The actor of all events of a take-over: its bookings are known by it when it is repeated."""
_CONTEXT = Context(actor=ACTOR)


@attrs.define
class _ProductRows:
    product: Product
    movements: set[str] = attrs.field(factory=set)
    adjusted: int = 0
    untouched: bool = False


async def ledger_state(log: EventLog, rows: SourceRows) -> LedgerState:
    """Read the ledger from the log, up to its present end."""
    theirs = {ledger_id(movement) for movement in rows.movements}
    seen: dict[str, _ProductRows] = {}
    categories: dict[str, Category] = {}
    head = await log.head()
    async for commits in log.follow(after=0, until=head.last):
        for commit in commits:
            if commit.category == category.CATEGORY_CATEGORY:
                categories[commit.aggregate.id] = commit.state
            if commit.category != product.CATEGORY:
                continue
            one = seen.setdefault(commit.aggregate.id, _ProductRows(commit.state))
            one.product = commit.state
            for event in commit.events:
                ours = event.context.actor == ACTOR
                match data := event.data:
                    case MovementRecorded():
                        one.movements.add(data.id)
                        if ours and data.id not in theirs:
                            one.adjusted += data.quantity if data.type is MovementType.IN else -data.quantity
                    case ProductCreated():
                        one.untouched = ours
                    case ProductDeactivated() | ProductActivated():
                        one.untouched = False
    return LedgerState(
        products={
            code: LedgerProduct(
                stock=one.product.stock,
                untouched=one.untouched,
                movements=frozenset(one.movements),
                adjusted=one.adjusted,
                updated_at=one.product.updated_at,
            )
            for code, one in seen.items()
        },
        categories=frozenset(categories),
        names={key_of(one.name): id_ for id_, one in categories.items()},
    )


async def carry_out(plan: TakeOverPlan, commands: Commands) -> AsyncIterator[tuple[ProductPlan, Sequence[Problem]]]:
    """Append the events of a plan. Yield each product when it is done, with the refusals of its commands.

    If it is ended early, or killed, a repetition takes over the rest. Raises the errors of `Commands`.
    """
    for row in plan.categories:
        steps = (
            CommandStep(CATEGORY_NAME, key_of(row.name), ReserveName(name=row.name, category_id=row.id, at=row.created_at)),
            CommandStep(
                CATEGORY, row.id, CreateCategory(id=row.id, name=row.name, description=row.description, at=row.created_at)
            ),
        )
        await commands.execute_together(steps, _CONTEXT)
    for planned in plan.products:
        yield planned, await _take_over(planned, commands)


async def _take_over(planned: ProductPlan, commands: Commands) -> Sequence[Problem]:
    refused: list[Problem] = []
    rest = planned.commands
    if rest and isinstance(rest[0], CreateProduct):
        first, rest = rest[0], rest[1:]
        own = AssignBarcode(code=planned.ean13, ean13=planned.ean13, at=first.at)
        try:
            await commands.execute_together(
                (CommandStep(PRODUCT, planned.ean13, first), CommandStep(BARCODE, planned.ean13, own)), _CONTEXT
            )
        except PantryError as error:
            return [Problem(f"product {planned.ean13}", f"is left out: {error}", left_out=True)]
    outcomes = await commands.execute_in_order(PRODUCT, planned.ean13, ((command, _CONTEXT) for command in rest))
    for command, outcome in zip(rest, outcomes, strict=True):
        if isinstance(outcome, PantryError):
            named = f"movement {command.id}" if hasattr(command, "id") else f"product {planned.ean13}"
            refused.append(Problem(named, f"is left out: {outcome}", left_out=True))
        elif isinstance(outcome, BaseException):
            raise outcome
    return refused
