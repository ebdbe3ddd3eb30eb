"""A model of the pantry in memory and the running server are asked the same, step by step, and agree after each."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from pantry.domain.ean13 import check_digit
from tests.support.pantry.system import API, Answer, Server, pantry_system

pytestmark = pytest.mark.real

T = TypeVar("T")

STEPS, EVERY = 100, 50
"""Steps of an example at most, and steps between two restarts."""
SLOTS = st.integers(0, 2)
AMOUNTS = st.integers(-1, 40).map(lambda quarters: quarters / 4)
_SERIES = itertools.count(1)


@attrs.define
class Movement:
    """A movement as the model knows it."""

    id: str
    type: str
    quantity: float
    scale: float
    undone: bool = False


def exact(quantity: float, factor: float) -> float | None:
    """A quantity in another unit; None if that has more than three decimal places, or is too large."""
    thousandths = Decimal(str(quantity)) * Decimal(str(factor)) * 1000
    return float(thousandths / 1000) if thousandths == int(thousandths) and thousandths <= 9_999_999_999 else None


@attrs.define
class Product:
    """A product as the model knows it."""

    name: str
    min_stock: float
    stock: float = 0
    unit: str = "kg"
    scale: float = 1
    active: bool = True
    movements: list[Movement] = attrs.field(factory=list)


class Machine(RuleBasedStateMachine):
    """The steps. Each example has unique codes and names on the one server."""

    server: Server
    runner: asyncio.Runner
    restarts = 0
    most_restarts = 0
    """Restarts and rebuilds of all examples: each takes a second."""
    checks = 0
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        series = next(_SERIES)
        self.codes = [f"{first}{check_digit(first)}" for first in (f"{210000000000 + series * 10 + slot}" for slot in range(3))]
        self.names = [f"{series} {letter}" for letter in "abc"]
        self.products: dict[str, Product] = {}
        self.categories: dict[str, str] = {}
        self.last: tuple[str, Any, str, Answer] | None = None
        self.batches: list[tuple[list[Any], str, Answer]] = []
        self.keys = (f"{series}-{number}" for number in itertools.count())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end."""
        return self.runner.run(work)

    def post(self, path: str, document: Any) -> Answer:
        """Send a POST under a new key."""
        key = next(self.keys)
        answer = self.run(self.server.post(path, document, **{"Idempotency-Key": key}))
        self.last = (path, document, key, answer)
        type(self).steps += 1
        return answer

    @rule(slot=SLOTS, min_stock=st.integers(0, 8), name=st.text("abc ", min_size=0, max_size=3))
    def create(self, slot: int, min_stock: int, name: str) -> None:
        """A new product, or one that is there."""
        code = self.codes[slot]
        answer = self.post(f"/products/{code}", {"name": name, "unit": "kg", "min_stock": min_stock})
        if not name.strip():
            assert answer.status == 422
        elif code in self.products:
            assert answer.status == 409
        else:
            assert answer.status == 201
            self.products[code] = Product(name, min_stock)

    @rule(slot=SLOTS, min_stock=st.integers(0, 8), name=st.text("abc", min_size=1, max_size=3))
    def edit(self, slot: int, min_stock: int, name: str) -> None:
        """Another name and minimum."""
        code = self.codes[slot]
        unit = self.products[code].unit if code in self.products else "kg"
        document = {"name": name, "unit": unit, "min_stock": min_stock}
        answer = self.run(self.server.ask("PUT", f"{API}/products/{code}", document))
        assert answer.status == (200 if code in self.products else 404)
        if code in self.products:
            self.products[code].name, self.products[code].min_stock = name, min_stock

    @rule(slot=SLOTS, active=st.booleans())
    def keep(self, slot: int, active: bool) -> None:
        """Deactivate or activate."""
        code = self.codes[slot]
        if active:
            assert self.post(f"/products/{code}/activate", {}).status == (200 if code in self.products else 404)
            if code in self.products and self.products[code].active:
                self.last = None  # what had no effect may have one later
        else:
            answer = self.run(self.server.ask("DELETE", f"{API}/products/{code}"))
            assert answer.status == (204 if code in self.products else 404)
        if code in self.products:
            self.products[code].active = active

    @rule(slot=SLOTS, type_=st.sampled_from(["in", "out"]), quantity=AMOUNTS)
    def move(self, slot: int, type_: str, quantity: float) -> None:
        """In or out, by the rules in their order."""
        code = self.codes[slot]
        answer = self.post("/movements", {"product_ean13": code, "type": type_, "quantity": quantity})
        product = self.products.get(code)
        change = quantity if type_ == "in" else -quantity
        if quantity <= 0:
            assert answer.status == 422
        elif product is None:
            assert answer.status == 404
        elif round(product.stock + change, 3) < 0:
            expected = f"insufficient stock: available {product.stock:.3f}, requested {quantity:.3f}"
            assert (answer.status, answer.body["error"]) == (422, expected)
        else:
            product.stock = round(product.stock + change, 3)
            assert (answer.status, answer.body["stock_after"]) == (201, product.stock)
            product.movements.append(Movement(answer.body["id"], type_, quantity, product.scale))

    @rule(rows=st.lists(st.tuples(SLOTS, st.sampled_from(["in", "out"]), AMOUNTS), min_size=1, max_size=5))
    def batch(self, rows: list[tuple[int, str, float]]) -> None:
        """Several movements at once, each by the rules on the stock after the ones before it."""
        table = [{"product_ean13": self.codes[slot], "type": type_, "quantity": quantity} for slot, type_, quantity in rows]
        key = next(self.keys)
        answer = self.run(self.server.post("/movements:batch", table, **{"Idempotency-Key": key}))
        assert answer.status == 200
        self.batches.append((table, key, answer))
        for (slot, type_, quantity), result in zip(rows, answer.body["results"], strict=True):
            product = self.products.get(self.codes[slot])
            change = quantity if type_ == "in" else -quantity
            if quantity <= 0:
                assert result["status"] == 422
            elif product is None:
                assert result["status"] == 404
            elif round(product.stock + change, 3) < 0:
                assert result["status"] == 422
            else:
                product.stock = round(product.stock + change, 3)
                assert (result["status"], result["stock_after"]) == (201, product.stock)
                product.movements.append(Movement(result["id"], type_, quantity, product.scale))

    @precondition(lambda self: self.batches)
    @rule(pick=st.integers(0, 1000))
    def repeat_batch(self, pick: int) -> None:
        """A batch of before has its first answer for each row that was judged by a product, whatever the stock is now."""
        table, key, answer = self.batches[pick % len(self.batches)]
        if any(row["status"] == 404 for row in answer.body["results"]):
            return  # no product keeps that refusal: it may be there by now
        again = self.run(self.server.post("/movements:batch", table, **{"Idempotency-Key": key}))
        assert (again.status, again.body) == (answer.status, answer.body)

    @rule(slot=SLOTS, factor=st.sampled_from([0.5, 2.0, 1000.0, 0.001]), name=st.integers(0, 3))
    def change_unit(self, slot: int, factor: float, name: int) -> None:
        """Another unit, if stock and minimum are exact in it."""
        code, unit = self.codes[slot], f"unit {name}"
        product = self.products.get(code)
        document = {"name": product.name if product else "a", "unit": unit, "factor": factor}
        answer = self.run(self.server.ask("PUT", f"{API}/products/{code}", document))
        if product is None:
            assert answer.status == 404
            return
        stock, least = exact(product.stock, factor), exact(product.min_stock, factor)
        if unit == product.unit or stock is None or least is None:
            assert answer.status == 409
            return
        assert (answer.status, answer.body["unit"]) == (200, unit)
        product.unit, product.stock, product.min_stock = unit, stock, least
        product.scale = float(f"{product.scale * factor:.12g}")

    @rule(slot=SLOTS, pick=st.integers(0, 1000))
    def undo(self, slot: int, pick: int) -> None:
        """Undo one of the movements, once."""
        product = self.products.get(self.codes[slot])
        if product is None or not product.movements:
            return
        movement = product.movements[pick % len(product.movements)]
        quantity = exact(movement.quantity, float(f"{product.scale / movement.scale:.12g}"))
        change = None if quantity is None else quantity if movement.type == "out" else -quantity
        answer = self.post(f"/movements/{movement.id}/undo", {})
        if movement.undone or change is None or quantity is None:
            assert answer.status == 409
        elif round(product.stock + change, 3) < 0:
            assert answer.status == 422
        else:
            assert (answer.status, answer.body["reverses"]) == (201, movement.id)
            product.stock = round(product.stock + change, 3)
            movement.undone = True
            product.movements.append(Movement(answer.body["id"], answer.body["type"], quantity, product.scale))

    @rule(slot=SLOTS, counted=AMOUNTS)
    def count(self, slot: int, counted: float) -> None:
        """A stocktake."""
        code = self.codes[slot]
        product = self.products.get(code)
        answer = self.post(f"/products/{code}/count", {"counted": counted})
        if counted < 0:
            assert answer.status == 422
        elif product is None:
            assert answer.status == 404
        else:
            assert (answer.status, answer.body["difference"]) == (200, round(counted - product.stock, 3))
            if counted != product.stock:
                booked = answer.body["movement"]
                product.movements.append(Movement(booked["id"], booked["type"], booked["quantity"], product.scale))
            product.stock = counted

    @rule(name=st.integers(0, 2), to=st.none() | st.integers(0, 2))
    def categorise(self, name: int, to: int | None) -> None:
        """A new category, or another name for one."""
        old = self.names[name]
        if to is None:
            answer = self.post("/categories", {"name": old})
            assert answer.status == (409 if old in self.categories else 201)
            if answer.status == 201:
                self.categories[old] = answer.body["id"]
        elif old in self.categories:
            new = self.names[to]
            taken = new in self.categories and new != old
            answer = self.run(self.server.ask("PUT", f"{API}/categories/{self.categories[old]}", {"name": new}))
            assert answer.status == (409 if taken else 200)
            if not taken:
                self.categories[new] = self.categories.pop(old)

    @precondition(lambda self: self.last is not None and self.last[3].status < 300)
    @rule()
    def repeat(self) -> None:
        """An effect takes place once."""
        assert self.last is not None
        path, document, key, answer = self.last
        again = self.run(self.server.post(path, document, **{"Idempotency-Key": key}))
        assert (again.status, again.body) == (answer.status, answer.body)

    @invariant()
    def restart(self) -> None:
        """kill -9 and a new start, with and without the read model by turns, after a fixed number of steps.

        It is not drawn: Hypothesis takes constants from all loaded modules, so draws depend on the tests before this one.
        """
        machine = type(self)
        machine.checks += 1
        if machine.restarts == machine.most_restarts or machine.checks % EVERY:
            return
        machine.restarts += 1
        self.run(self.server.kill())
        if machine.restarts % 2:
            self.server.remove_database()
        self.run(self.server.start())

    @invariant()
    def agree(self) -> None:
        """The server says of each product and category what the model says."""
        for code in self.codes:
            answer = self.run(self.server.ask("GET", f"{API}/products/{code}"))
            product = self.products.get(code)
            if product is None:
                assert answer.status == 404
                continue
            told = {key: answer.body[key] for key in ("name", "unit", "min_stock", "current_stock", "active")}
            assert told == {
                "name": product.name,
                "unit": product.unit,
                "min_stock": product.min_stock,
                "current_stock": product.stock,
                "active": product.active,
            }

    def teardown(self) -> None:
        """At the end, the history too."""
        for code, product in self.products.items():
            movements = self.run(self.server.get(f"/products/{code}/movements"))
            assert [m["id"] for m in reversed(movements)] == [m.id for m in product.movements]
            assert [("reversed_by" in m) for m in reversed(movements)] == [m.undone for m in product.movements]
        known = {category["name"]: category["id"] for category in self.run(self.server.get("/categories"))}
        assert {name: known.get(name) for name in self.names if name in known} == self.categories


@pytest.mark.parametrize(("examples", "restarts"), [(5, 2), pytest.param(20, 6, marks=pytest.mark.long)])
def test_the_server_and_a_model_in_memory_agree_after_every_step(tmp_path: Path, examples: int, restarts: int) -> None:
    """The long one has another seed in each run."""
    with asyncio.Runner() as runner:
        running = pantry_system(tmp_path)
        system = runner.run(running.__aenter__())
        try:
            Machine.server, Machine.runner, Machine.most_restarts = system.one, runner, restarts
            Machine.restarts = Machine.checks = Machine.steps = 0
            run_state_machine_as_test(
                Machine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=STEPS,
                    deadline=None,
                    derandomize=examples == 5,
                    suppress_health_check=list(HealthCheck),
                ),
            )
            assert Machine.restarts == restarts
            assert Machine.steps > examples * STEPS / 4
            runner.run(system.one.kill())
            assert runner.run(system.one.difference_from_a_fold()) is None
        finally:
            runner.run(running.__aexit__(None, None, None))
