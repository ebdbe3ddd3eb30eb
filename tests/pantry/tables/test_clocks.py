"""The past and the periods of reports follow the order of the log, whatever the clocks of the servers were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from pantry.domain.ledger import PRODUCT, CountStock, CreateProduct, EditProduct, ProductCommand, RecordMovement, SetActive
from pantry.domain.product import Details, MovementType
from pantry.domain.registry import REGISTRY
from pantry.readmodel import MODEL
from pantry.readmodel.graph import PantryGraph
from pantry.readmodel.queries import PantryQueries
from pantry.readmodel.views import ConsumptionView, ProductView, period_of
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.queries import ListPart
from projections.store import Store
from projections.stores.databases import store_at
from tests.support.pantry.stocked import code_of

IN, OUT = MovementType.IN, MovementType.OUT
CODE, OTHER = code_of(1), code_of(2)
DAY = timedelta(days=1)
DETAILS = Details(name="Flour", description="", unit="kg", min_stock=2000, category_id=None)


class Book:
    """Books at times that a test chooses, and reads."""

    def __init__(self, store: Store) -> None:
        self.now = datetime.now(UTC)
        self.queries, self.graph = PantryQueries(store), PantryGraph(store)
        self._log = MemoryLog(REGISTRY)
        self._commands = Commands(self._log)
        self._projector = Projector(self._log, store, MODEL)
        self._number = 0
        self.first = ""

    async def do(self, command: ProductCommand) -> None:
        """A command, and its rows."""
        await self._commands.execute(PRODUCT, command.ean13, command)
        await self._projector.run(until=(await self._log.head()).last)

    async def move(self, type_: MovementType, quantity: int, at: datetime, code: str = CODE) -> str:
        """A movement of whole units; its id."""
        self._number += 1
        id_ = f"{self._number:08}-0000-4000-8000-000000000000"
        await self.do(RecordMovement(id=id_, ean13=code, type=type_, quantity=quantity * 1000, at=at))
        return id_

    async def past(self, at: datetime) -> ProductView:
        """The product at a time: the same by all queries."""
        product = await self.queries.product(CODE, as_of=at)
        assert product is not None
        assert await self.queries.products(as_of=at, search=CODE, limit=2) == [product]
        assert await self.graph.products_by_code([CODE], at) == {CODE: product}
        assert await self.graph.stock_at([CODE], at) == {CODE: product.current_stock}
        return product

    async def consumed(self, since: datetime | None = None, until: datetime | None = None) -> ConsumptionView:
        """The figures of the product over a period."""
        begin, end = period_of(since, until)
        [figures] = await self.queries.consumption(since=begin, until=end, ean13=CODE)
        return figures


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either kind."""
    address: str = f"sqlite:{tmp_path / 'pantry.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return address


@pytest_asyncio.fixture
async def book(url: str) -> AsyncIterator[Book]:
    """A product that was made ten days ago, with 10 since nine days ago."""
    async with store_at(url) as store:
        await Migrations(store, MODEL).up()
        book = Book(store)
        for code in (CODE, OTHER):
            await book.do(CreateProduct(ean13=code, details=DETAILS, at=book.now - 10 * DAY))
        book.first = await book.move(IN, 10, book.now - 9 * DAY)
        yield book


async def test_a_clock_that_is_ahead_for_one_booking_hides_no_later_booking(book: Book) -> None:
    await book.move(OUT, 4, book.now + 2 * DAY)
    await book.move(OUT, 5, book.now - timedelta(hours=1))
    now = await book.past(book.now)
    assert (now.current_stock, now.is_low) == (1000, True)
    assert (await book.graph.report(as_of=book.now)).low_stock_products == 2
    for until in (None, book.now):
        figures = await book.consumed(until=until)
        assert (figures.total_in, figures.total_out) == (10_000, 9000)
    assert (await book.past(book.now - DAY)).current_stock == 10_000
    assert (await book.consumed(book.now - 9.5 * DAY, book.now - DAY)).total_out == 0


async def test_the_present_has_the_last_booking_whatever_its_time(book: Book) -> None:
    await book.move(OUT, 9, book.now + 2 * DAY)
    for at in (datetime.now(UTC) + DAY, book.now + 3 * DAY):
        assert (await book.past(at)).current_stock == 1000
    assert (await book.consumed()).total_out == 9000
    assert (await book.consumed(until=book.now + DAY)).total_out == 9000
    assert (await book.consumed(since=book.now + DAY)).total_out == 0


async def test_details_stocktakes_and_movements_of_a_past_belong_to_one_place_of_the_log(book: Book) -> None:
    """The clock was ahead for a movement, a stocktake and a deactivation. The edit after them has the right time."""
    await book.move(OUT, 9, book.now + 2 * DAY)
    await book.do(CountStock(id="c" * 36, ean13=CODE, counted=1000, at=book.now + 3 * DAY))
    await book.do(SetActive(ean13=CODE, active=False, at=book.now + 4 * DAY))
    edited = book.now - DAY
    await book.do(EditProduct(ean13=CODE, details=attrs.evolve(DETAILS, name="Rye"), at=edited))
    then = await book.past(book.now)
    assert (then.name, then.current_stock, then.active) == ("Rye", 1000, False)
    assert then.counted_at is not None
    assert then.updated_at.startswith(edited.strftime("%Y-%m-%dT%H:%M:%S"))
    before = await book.past(edited - timedelta(seconds=1))
    assert (before.name, before.current_stock, before.active, before.counted_at) == ("Flour", 10_000, True, None)


async def test_lists_have_the_order_of_the_log(book: Book) -> None:
    ahead = await book.move(IN, 1, book.now + 2 * DAY)
    other = await book.move(IN, 1, book.now - DAY, OTHER)
    last = await book.move(IN, 1, book.now)
    listed = await book.queries.movements(limit=3)
    assert [movement.id for movement in listed] == [last, other, ahead]
    rest = await book.queries.movements(before=(listed[0].sequence, listed[0].position), limit=2)
    assert [movement.id for movement in rest] == [other, ahead]
    timely = await book.queries.movements(since=book.now - DAY, until=book.now, limit=3)
    assert [movement.id for movement in timely] == [last, other]
    for days in (2, 1):
        await book.do(CountStock(id="", ean13=CODE, counted=12_000, reason=f"{days}", at=book.now + days * DAY))
    assert [stocktake.reason for stocktake in await book.queries.stocktakes(limit=2)] == ["1", "2"]


async def test_pages_of_a_period_have_the_order_of_the_log_if_the_newest_times_are_early_in_it(book: Book) -> None:
    days = (1, 9.5, 3, 0.5, 2, 4, -2, 3.5, 1.5)
    booked = [await book.move(IN, 1, book.now - day * DAY, (CODE, OTHER)[day == 2]) for day in days]
    for since, until in ((4, 1), (4, 0.5), (4, None), (None, 3), (9, 9), (1, 0)):
        begin, end = (None if day is None else book.now - day * DAY for day in (since, until))
        at: dict[str, Any] = {"since": begin, "until": end}
        times = list(zip(booked, days, strict=True))
        expected = [id_ for id_, day in reversed(times) if (since is None or day <= since) and (until is None or day >= until)]
        if since is None or since >= 9 >= (until or 0):
            expected.append(book.first)
        for limit in (1, 2, 5):
            pages: list[str] = []
            before = None
            while page := await book.queries.movements(**at, before=before, limit=limit):
                pages += [movement.id for movement in page]
                before = (page[-1].sequence, page[-1].position)
            assert pages == expected
            head = await book.graph.movements(ListPart(limit=limit), **at)
            assert ([movement.id for movement in head.items], head.more) == (expected[:limit], len(expected) > limit)
            tail = await book.graph.movements(ListPart(limit=limit, backward=True), **at)
            assert [movement.id for movement in tail.items] == expected[-limit:]


async def test_a_product_has_no_past_before_its_creation(book: Book) -> None:
    assert await book.queries.product(CODE, as_of=book.now - 11 * DAY) is None
    assert await book.graph.stock_at([CODE], book.now - 11 * DAY) == {}
