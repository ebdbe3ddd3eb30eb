"""A pantry's read model with many products, made of events in memory: without a broker and without a service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.commit import Proposal
from eventlog.privacy import PersonalDataCipher
from eventlog.testing.memory import MemoryKeyring, MemoryLog
from pantry.domain import category, product
from pantry.domain.category import Category, CategoryCreated
from pantry.domain.ean13 import check_digit
from pantry.domain.ledger import PRODUCT
from pantry.domain.product import Details, MovementRecorded, MovementType, Product, ProductCreated, ProductEvent
from pantry.domain.registry import REGISTRY
from pantry.readmodel import MODEL
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.stores.databases import store_at

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def code_of(number: int) -> str:
    """The code of the n-th product."""
    first = f"{300000000000 + number}"
    return f"{first}{check_digit(first)}"


def moved_at(number: int, movement: int) -> datetime:
    """When the n-th product moved for the m-th time, from 0."""
    return EPOCH + timedelta(days=movement + 1, seconds=number)


async def stocked(place: Path | str, *, products: int, movements: int, categories: int) -> None:
    """Write the database of a `stocked_log`, in a file or at an address."""
    log = await stocked_log(products=products, movements=movements, categories=categories)
    async with store_at(place if isinstance(place, str) else f"sqlite:{place}") as store:
        await Migrations(store, MODEL).up()
        head = await log.head()
        await Projector(log, store, MODEL).run(until=head.last)


async def stocked_log(*, products: int, movements: int, categories: int) -> MemoryLog:
    """The events.

    Each product comes in `movements` times, 1 more each time, and every third is low.

    Names are `product <number>`, all of the same length; product n is in category n modulo `categories`, one in ten in none.
    """
    log = MemoryLog(REGISTRY, people=PersonalDataCipher(MemoryKeyring()))
    for number in range(categories):
        created = CategoryCreated(id=f"category-{number}", name=f"category {number:03}", description="", at=EPOCH)
        state = category.evolve(None, created)
        await _append(log, AggregateId(category.CATEGORY_CATEGORY, created.id), (created,), state)
    for number in range(products):
        details = Details(
            name=f"product {number:05}",
            description="",
            unit="kg",
            min_stock=1_000_000 if number % 3 == 0 else 0,
            category_id=None if number % 10 == 9 else f"category-{number % categories}",
        )
        code = code_of(number)
        events: list[ProductEvent] = [ProductCreated(ean13=code, details=details, at=EPOCH)]
        stock = 0
        for movement in range(movements):
            stock += 1000 * (movement + 1)
            events.append(
                MovementRecorded(
                    id=f"movement-{number}-{movement}",
                    type=MovementType.IN,
                    quantity=1000 * (movement + 1),
                    stock=stock,
                    reason="",
                    notes="",
                    created_by="test",
                    at=moved_at(number, movement),
                    unit="kg",
                )
            )
        await _append(log, AggregateId(product.CATEGORY, code), tuple(events), PRODUCT.fold(events, None))
    return log


async def _append(log: MemoryLog, aggregate: AggregateId, events: tuple[object, ...], state: Product | Category | None) -> None:
    commit = NewCommit(id=aggregate.subject, at=EPOCH, events=tuple(map(NewEvent, events)), state=state)
    await log.append(Proposal(aggregate=aggregate, expected=0, commit=commit))
