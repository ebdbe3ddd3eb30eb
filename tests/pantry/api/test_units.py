"""A product changes its unit with a factor: stock, minimum and codes are converted, and the past stays in its unit."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from pantry.domain.gtin import own_code
from tests.pantry.api.answers import problem
from tests.support.pantry.system import API, Answer, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


def now() -> str:
    """The present time."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


async def put(server: Server, code: str, **values: Any) -> Answer:
    """The answer to a replacement of the product."""
    return await server.ask("PUT", f"{API}/products/{code}", {"name": "Flour", **values})


@pytest_asyncio.fixture(loop_scope="module")
async def flour(server: Server, code: str) -> str:
    """A product with 2 kg, low from 0.5 kg down."""
    await server.create(code, min_stock=0.5)
    await server.moved("in", 2, code)
    return code


async def test_the_past_stays_in_its_unit(server: Server, flour: str) -> None:
    before = now()
    changed = await put(server, flour, unit="g", factor=1000)
    assert [changed.body[name] for name in ("unit", "current_stock", "min_stock")] == ["g", 2000, 500]
    after = now()
    await server.moved("out", 250, flour)
    then = await server.get(f"/products/{flour}?as_of={before}")
    assert [then[name] for name in ("unit", "current_stock", "min_stock")] == ["kg", 2, 0.5]
    assert await server.get(f"/products/{flour}?as_of={after}") == changed.body
    movements = await server.get(f"/products/{flour}/movements")
    assert [(one["quantity"], one["stock_after"], one["unit"]) for one in movements] == [(250, 1750, "g"), (2, 2, "kg")]
    [figures] = await server.get(f"/reports/consumption?ean13={flour}")
    assert [figures[name] for name in ("unit", "in", "out", "net")] == ["g", 2000, 250, 1750]
    table = await server.ask("GET", f"{API}/products/{flour}/movements", headers={"Accept": "text/csv"})
    assert [row["unit"] for row in csv.DictReader(io.StringIO(table.body))] == ["g", "kg"]


async def test_a_movement_is_undone_in_the_unit_that_the_product_has_now(server: Server, flour: str) -> None:
    bought = (await server.get(f"/products/{flour}/movements"))[0]
    await put(server, flour, unit="g", factor=1000)
    undone = await server.post(f"/movements/{bought['id']}/undo")
    assert (undone.status, undone.body["quantity"], undone.body["unit"]) == (201, 2000, "g")
    assert await server.stock(flour) == 0
    [figures] = await server.get(f"/reports/consumption?ean13={flour}")
    assert (figures["in"], figures["out"]) == (0, 0)
    again = await server.post(f"/movements/{undone.body['id']}/undo")
    assert (again.status, await server.stock(flour)) == (201, 2000)
    spoonful = await server.moved("in", 0.5, flour)
    await server.moved("out", 0.5, flour)
    assert (await put(server, flour, unit="kg", factor=0.001)).body["current_stock"] == 2
    problem(await server.post(f"/movements/{spoonful['id']}/undo"), 409, "0.500 g cannot be written in kg")
    assert (await server.post(f"/movements/{again.body['id']}/undo")).body["quantity"] == 2


async def test_an_inexact_change_of_a_unit_changes_nothing(server: Server, flour: str) -> None:
    await server.moved("in", 0.001, flour)
    pack = own_code(7_000_001)
    await server.ask("PUT", f"{API}/codes/{pack}", {"product_ean13": flour, "factor": 0.5})
    before = await server.get(f"/products/{flour}")
    problem(await put(server, flour, unit="t", factor=0.001, min_stock=0), 409, "2.001 kg cannot be written in t")
    problem(await put(server, flour, unit="g"), 409, "say with `factor` how many g 1 kg is")
    problem(await put(server, flour, unit="kg", factor=1000), 409, "the unit is kg already")
    for factor in (0, -1, 1.0000001, 2e6, "1000", True):
        problem(await put(server, flour, unit="g", factor=factor), 422, "factor")
    assert await server.get(f"/products/{flour}") == before


async def test_codes_stand_for_the_same_quantity(server: Server, flour: str) -> None:
    bag, crumb = own_code(7_000_002), own_code(7_000_003)
    for code, factor in ((bag, 2.5), (crumb, 0.001)):
        await server.ask("PUT", f"{API}/codes/{code}", {"product_ean13": flour, "factor": factor})
    problem(await put(server, flour, unit="t", factor=0.001, min_stock=0), 409, "cannot be converted exactly")
    assert (await server.get(f"/products/{flour}"))["unit"] == "kg"
    assert (await put(server, flour, unit="g", factor=1000, min_stock=750)).body["min_stock"] == 750
    codes = await server.get(f"/codes?ean13={flour}")
    assert {one["code"]: one["factor"] for one in codes} == {bag: 2500, crumb: 1}


async def test_a_booking_that_names_another_unit_is_refused(server: Server, flour: str, new_code: Callable[[], str]) -> None:
    await server.ask("POST", f"{API}/products/{flour}/count", {"counted": 2})
    await put(server, flour, unit="g", factor=1000)
    body = {"product_ean13": flour, "type": "out", "quantity": 1, "unit": "kg"}
    problem(await server.post("/movements", body), 409, "the product is kept in g, not in kg")
    problem(
        await server.post(f"/products/{flour}/count", {"counted": 2, "unit": "kg"}), 409, "the product is kept in g, not in kg"
    )
    rows = f"product_ean13,type,quantity,unit\n{flour},out,1,kg\n{flour},out,100,G\n"
    batch = await server.ask("POST", f"{API}/movements:batch", data=rows, headers={"Content-Type": "text/csv"})
    assert [row["status"] for row in batch.body["results"]] == [409, 201]
    assert await server.stock(flour) == 1900
    [counted] = await server.get(f"/stocktakes?ean13={flour}")
    assert (counted["counted"], counted["unit"]) == (2, "kg")
    other = new_code()
    await server.create(other)
    assert (await put(server, other, unit="g")).status == 200, "nothing was booked: no factor is needed"
