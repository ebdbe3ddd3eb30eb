"""A take-over that is ended early: its repetition takes over the rest, and changes no decision of later users."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from eventlog import AggregateId
from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from pantry.domain.ledger import PRODUCT, CreateProduct, ProductCommand, SetActive
from pantry.domain.product import Details, Product
from pantry.domain.registry import REGISTRY
from pantry.takeover.carrying import carry_out, ledger_state
from pantry.takeover.plan import TakeOverPlan, plan_of
from pantry.takeover.source import FormerMovement, FormerProduct, SourceRows

EAN = "4006381333931"
AT = datetime(2026, 1, 10, 9, 30, tzinfo=UTC)
ROWS = SourceRows(
    categories=(),
    products=[
        FormerProduct(
            ean13=EAN,
            name="Flour",
            description="",
            unit="kg",
            min_stock=0,
            current_stock=2000,
            category_id="",
            active=False,
            created_at=AT,
            updated_at=AT,
        )
    ],
    movements=[
        FormerMovement(
            id="0b0f9c1e-2d51-4f0e-8a39-0c3a2f4d5e6f",
            product_ean13=EAN,
            type="in",
            quantity=2000,
            reason="",
            notes="",
            created_by="",
            created_at=AT,
        )
    ],
)


async def planned(log: MemoryLog, rows: SourceRows = ROWS) -> TakeOverPlan:
    return plan_of(rows, await ledger_state(log, rows), AT)


def commands_of(plan: TakeOverPlan) -> Sequence[ProductCommand]:
    [product] = plan.products
    return product.commands


async def run(log: MemoryLog, plan: TakeOverPlan, *, only: int | None = None) -> None:
    """Carry a plan out, or only its first commands."""
    some = attrs.evolve(plan, products=[attrs.evolve(one, commands=one.commands[:only]) for one in plan.products])
    assert [refused async for _, refused in carry_out(some, Commands(log))] == [[]]


async def product_of(log: MemoryLog) -> Product:
    commit = await log.last(AggregateId("pantry.product", EAN))
    assert commit is not None
    product: Product = commit.state
    return product


async def test_an_inactive_product_becomes_inactive_wherever_the_take_over_was_ended() -> None:
    for ended_after in range(len(commands_of(await planned(MemoryLog(REGISTRY))))):
        log = MemoryLog(REGISTRY)
        if ended_after:
            await run(log, await planned(log), only=ended_after)
        await run(log, await planned(log))
        product = await product_of(log)
        assert (product.stock, product.active) == (2000, False), ended_after
        assert commands_of(await planned(log)) == []


async def test_a_product_that_was_activated_since_stays_active() -> None:
    log = MemoryLog(REGISTRY)
    await run(log, await planned(log))
    await Commands(log).execute(PRODUCT, EAN, SetActive(ean13=EAN, active=True, at=AT))
    assert commands_of(await planned(log)) == []


async def test_a_product_of_the_ledger_with_the_same_code_stays_active() -> None:
    log = MemoryLog(REGISTRY)
    details = Details(name="Flour", description="", unit="kg", min_stock=0, category_id=None)
    await Commands(log).execute(PRODUCT, EAN, CreateProduct(ean13=EAN, details=details, at=AT))
    await run(log, await planned(log))
    product = await product_of(log)
    assert (product.stock, product.active) == (2000, True)


async def test_a_repetition_books_nothing_whatever_the_ids_of_the_movements_are() -> None:
    [movement] = ROWS.movements
    for id_ in (movement.id, movement.id.upper(), "17"):
        log = MemoryLog(REGISTRY)
        rows = attrs.evolve(ROWS, movements=[attrs.evolve(movement, id=id_)])
        await run(log, await planned(log, rows))
        assert (await product_of(log)).stock == 2000
        assert commands_of(await planned(log, rows)) == [], id_
