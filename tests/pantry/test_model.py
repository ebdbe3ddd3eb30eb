"""Random commands on two servers that are killed agree with a model in Decimal: each answer, read, report and CSV.

The clock of one server is two days ahead.
"""

from __future__ import annotations

import asyncio
import csv
import io
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest

from pantry.domain.gtin import own_code
from servicekit.broker_watch import MOST
from tests.support.pantry.model import Kept, Model
from tests.support.pantry.system import API, Answer, PantrySystem, Server, pantry_system

pytestmark = pytest.mark.real

ROWS = 250
"""Movements of one import."""
SINGLE = 12
"""Single requests after an import."""
LOOK = 10
"""Rounds between two comparisons of everything."""


def number(value: Any) -> Decimal:
    """A number of an answer as it is written."""
    return Decimal(str(value))


Row = tuple[Decimal, dict[str, Any]]
"""A change, and its result in the answer to an import."""


def booked(product: Kept, change: Decimal, row: dict[str, Any]) -> bool:
    """Whether the model has the same result. The change takes effect in the model."""
    if (refusal := product.refusal(change)) is not None:
        return row["status"] == 422 and refusal in row["error"]
    if "stock_after" not in row:
        return False
    product.book(row["id"], change)
    return number(row["stock_after"]) == product.stock


@attrs.define
class Driver:
    """Sends commands to the servers, and does the same in the model."""

    system: PantrySystem
    random: random.Random
    model: Model = attrs.field(factory=Model)
    batches: list[tuple[dict[str, str], Any, Any]] = attrs.field(factory=list)
    steps: int = 0
    latest: int = 0
    began: datetime = attrs.field(factory=lambda: datetime.now(UTC))

    @property
    def server(self) -> Server:
        """One of the servers."""
        return self.random.choice(self.system.servers)

    def quantity(self) -> Decimal:
        """A quantity of up to three places."""
        return Decimal(self.random.choice((1, 2, 7, 250, 1000, 1500, 12_345, self.random.randint(1, 99_999)))) / 1000

    async def post(self, path: str, body: Any, method: str = "POST") -> Answer:
        """The answer to a change; its position is waited for by later reads."""
        self.steps += 1
        answer = await self.server.ask(method, API + path, body, headers={"Idempotency-Key": uuid4().hex})
        self.latest = max(self.latest, int(answer.headers.get("Event-Sequence", 0)))
        return answer

    async def create(self, index: int) -> None:
        """A new product, which may need its own code."""
        code, least = own_code(5_000_000 + index), Decimal(self.random.randint(0, 8))
        answer = await self.post(f"/products/{code}", {"name": f"P{index:03}", "unit": "kg", "min_stock": float(least)})
        assert answer.status == 201, answer
        self.model.products[code] = Kept(code=code, name=f"P{index:03}", least=least)

    async def round(self, *, kill: bool) -> None:
        """An import on each server, of different products, at once; one of them may be killed in the middle."""
        codes = sorted(self.model.products)
        self.random.shuffle(codes)
        half = len(codes) // 2
        victim = self.random.randrange(2) if kill else None
        await asyncio.gather(
            *(
                self.imported(server, part, killed=number == victim)
                for number, (server, part) in enumerate(zip(self.system.servers, (codes[:half], codes[half:]), strict=True))
            )
        )

    async def imported(self, server: Server, codes: list[str], *, killed: bool) -> None:
        """Many movements at once, each judged on the state after the ones before it."""
        chosen = random.Random(self.random.random())
        wanted = [(chosen.choice(codes), self.quantity() * chosen.choice((1, 1, -1))) for _ in range(ROWS)]
        rows = [
            {"product_ean13": code, "type": "in" if change > 0 else "out", "quantity": float(abs(change))}
            for code, change in wanted
        ]
        headers = {"Idempotency-Key": uuid4().hex}
        sending = asyncio.create_task(server.ask("POST", f"{API}/movements:batch", rows, headers=headers))
        if killed:
            await asyncio.sleep(chosen.uniform(0, 0.1))  # at any moment of it
            await server.kill()
            await sending
            await server.start()
            sending = asyncio.create_task(server.ask("POST", f"{API}/movements:batch", rows, headers=headers))
        answer = await sending
        assert answer.status == 200, answer
        self.latest = max(self.latest, int(answer.headers["Event-Sequence"]))
        rows_of: dict[str, list[Row]] = {code: [] for code, _ in wanted}
        for (code, change), row in zip(wanted, answer.body["results"], strict=True):
            rows_of[code].append((change, row))
        for code, rows_there in rows_of.items():
            product = self.model.products[code]
            assert all(booked(product, change, row) for change, row in rows_there), (product, rows_there)
        self.batches.append((headers, rows, answer.body))
        self.steps += ROWS

    async def repeat(self) -> None:
        """A batch of before has its first answer, whatever the stock is now."""
        headers, rows, body = self.random.choice(self.batches)
        answer = await self.server.ask("POST", f"{API}/movements:batch", rows, headers=headers)
        assert (answer.status, answer.body) == (200, body)

    async def single(self) -> None:
        """One of the other commands."""
        product = self.random.choice(list(self.model.products.values()))
        match self.random.choice(("undo", "undo", "undo", "count", "code", "unit", "move")):
            case "undo":
                await self.undo(product)
            case "count":
                await self.count(product)
            case "code":
                await self.code(product)
            case "unit":
                await self.change_unit(product)
            case _:
                await self.move(product)

    async def undo(self, product: Kept) -> None:
        """Undo a movement, or an undoing, as far back as it may be."""
        if not product.moved:
            return
        movement = self.random.choice(product.moved[-12:])
        answer = await self.post(f"/movements/{movement.id}/undo", {})
        if movement.reversed_by is not None:
            assert answer.status == 409, answer
        elif (change := product.opposite(movement)) is None:
            assert (answer.status, "cannot be written in" in answer.body["error"]) == (409, True), answer
        elif (refusal := product.refusal(change)) is not None:
            assert (answer.status, refusal in answer.body["error"]) == (422, True), answer
        else:
            assert answer.status == 201, answer
            movement.reversed_by = product.book(answer.body["id"], change, reverses=movement)

    async def change_unit(self, product: Kept) -> None:
        """Another unit: with all quantities converted, or refused."""
        factor = Decimal(self.random.choice(("1000", "0.001", "2", "0.5", "12", "0.25")))
        unit = f"unit {self.random.randint(0, 99)}"
        body = {"name": product.name, "unit": unit, "factor": float(factor)}
        answer = await self.post(f"/products/{product.code}", body, "PUT")
        codes = {code: of[1] for code, of in self.model.codes.items() if of[0] == product.code}
        if unit == product.unit or not product.converts(factor, codes.values()):
            assert answer.status == 409, answer
            return
        product.unit = unit
        self.model.codes |= {code: (product.code, of * factor) for code, of in codes.items()}
        assert (answer.status, number(answer.body["current_stock"]), answer.body["unit"]) == (200, product.stock, unit), answer

    async def count(self, product: Kept) -> None:
        """A stocktake, with a difference or without."""
        counted = self.random.choice((product.stock, self.quantity()))
        answer = await self.post(f"/products/{product.code}/count", {"counted": float(counted)})
        difference = counted - product.stock
        assert (answer.status, number(answer.body["difference"])) == (200, difference), answer
        product.counts.append((counted, difference, product.unit))
        if difference:
            product.book(answer.body["movement"]["id"], difference, counted=counted)

    async def code(self, product: Kept) -> None:
        """A code for a product: a new one, one that is taken, or one that is removed."""
        code = own_code(9_000_000 + self.random.randint(0, 40))
        if code in self.model.codes and self.random.random() < 0.4:
            answer = await self.post(f"/codes/{code}", None, "DELETE")
            assert answer.status == 204, answer
            del self.model.codes[code]
            return
        factor = self.quantity()
        answer = await self.post(f"/codes/{code}", {"product_ean13": product.code, "factor": float(factor)}, "PUT")
        holder = self.model.codes.get(code, (product.code, factor))[0]
        assert answer.status == (200 if holder == product.code else 409), answer
        if holder == product.code:
            self.model.codes[code] = (product.code, factor)

    async def move(self, product: Kept) -> None:
        """A movement, repeated under its key on the other server."""
        change = self.quantity() * self.random.choice((1, -1))
        body = {"product_ean13": product.code, "type": "in" if change > 0 else "out", "quantity": float(abs(change))}
        key = {"Idempotency-Key": uuid4().hex}
        answers = [await server.post("/movements", body, **key) for server in self.system.servers]
        self.steps += 1
        refusal = product.refusal(change)
        assert {answer.status for answer in answers} == {422 if refusal else 201}, answers
        if refusal is None:
            assert len({answer.body["id"] for answer in answers}) == 1
            product.book(answers[0].body["id"], change)
            self.latest = max(self.latest, int(answers[0].headers["Event-Sequence"]))

    # Comparisons

    async def compare(self) -> None:
        """Both servers have what the model has."""
        for server in self.system.servers:
            listed = await server.get(f"/products?min_seq={self.latest}")
            assert {one["ean13"]: number(one["current_stock"]) for one in listed} == self.model.stocks()
            present = (datetime.now(UTC) + MOST).isoformat().replace("+00:00", "Z")
            assert {
                one["ean13"]: number(one["current_stock"]) for one in await server.get(f"/products?as_of={present}")
            } == self.model.stocks()
            low = await server.get("/reports/low-stock")
            assert {one["ean13"] for one in low} == self.model.low()
            bought = await server.get("/reports/shopping-list")
            assert {one["ean13"]: number(one["suggested"]) for one in bought} == self.model.to_buy()
            consumed = await server.get("/reports/consumption")
            assert {one["ean13"]: (number(one["in"]), number(one["out"]), number(one["corrected"])) for one in consumed} == {
                code: (*product.sums(), product.corrected()) for code, product in self.model.products.items()
            }
            codes = await server.get("/codes")
            assert {one["code"]: (one["product_ean13"], number(one["factor"])) for one in codes} == self.model.codes

    async def compare_histories(self) -> None:
        """Each movement is there once, with its stock, its undoing and its count, in JSON and in CSV."""
        server = self.server
        for code, product in self.model.products.items():
            rows: list[dict[str, str]] = []
            query = "limit=1000"
            while query:
                answer = await server.ask("GET", f"{API}/products/{code}/movements?{query}", headers={"Accept": "text/csv"})
                rows += csv.DictReader(io.StringIO(answer.body))
                query = answer.headers.get("Link", "").partition("?")[2].partition(">")[0]
            assert [row["id"] for row in reversed(rows)] == [movement.id for movement in product.moved]
            for row, movement in zip(reversed(rows), product.moved, strict=True):
                assert (number(row["stock_after"]), row["unit"]) == (movement.after, movement.unit)
                assert self.began - MOST < datetime.fromisoformat(row["created_at"]) < datetime.now(UTC) + MOST
                assert number(row["quantity"]) == abs(movement.change)
                assert row["reverses"] == (movement.reverses.id if movement.reverses else "")
                assert row["reversed_by"] == (movement.reversed_by.id if movement.reversed_by else "")
            counts = await server.get(f"/stocktakes?ean13={code}")
            assert [
                (number(one["counted"]), number(one["difference"]), one["unit"]) for one in reversed(counts)
            ] == product.counts


@pytest.mark.timeout(600)
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("steps", "kills"),
    [pytest.param(4_000, (5,), id="4,000"), pytest.param(20_000, (5, 13, 22, 31), id="20,000", marks=pytest.mark.long)],
)
async def test_commands_on_two_servers_agree_with_a_model(tmp_path: Path, steps: int, kills: Sequence[int], seed: int) -> None:
    """A server is killed while it imports, in the rounds of `kills`."""
    async with pantry_system(tmp_path, servers=2) as system:
        driver = Driver(system, random.Random(seed))
        await system.servers[1].kill()
        system.servers[1].module = "tests.support.pantry.ahead"
        await system.servers[1].start()
        for index in range(40):
            await driver.create(index)
        rounds = 0
        while driver.steps < steps:
            rounds += 1
            await driver.round(kill=rounds in kills)
            for _ in range(SINGLE):
                await driver.single()
            await driver.repeat()
            if rounds % LOOK == 0:
                await driver.compare()
        assert rounds > max(kills), "every kill took place"
        await driver.compare()
        await driver.compare_histories()
        assert any(product.scale != 1 for product in driver.model.products.values()), "a unit was changed"
        for server in system.servers:
            await server.kill()
        assert await system.one.difference_from_a_fold() is None
