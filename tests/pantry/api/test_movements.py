"""Movements and stocktakes: exact, never lost, never below zero, undone once."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.pantry.api.answers import problem
from tests.support.pantry.system import API, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


async def test_a_movement_is_answered_as_it_is_read(server: Server, code: str) -> None:
    await server.create(code)
    made = await server.move("in", 10.3, code, reason="bought", notes="two\nlines", created_by="Ada")
    assert made.status == 201
    assert (await server.ask("GET", made.headers["Location"])).body == made.body
    assert made.body["stock_after"] == made.body["quantity"] == 10.3
    bare = await server.moved("out", 0.3, code)
    assert not {"reason", "notes", "created_by", "reverses"} & set(bare)
    assert bare["id"][14] == "4"
    assert [movement["id"] for movement in await server.get(f"/products/{code}/movements")] == [bare["id"], made.body["id"]]
    assert (await server.get(f"/movements?ean13={code}&type=in"))[0]["id"] == made.body["id"]
    problem(await server.ask("GET", f"{API}/movements/{code}"), 404)


async def test_a_movement_that_cannot_be_booked_is_refused_with_its_text(server: Server, code: str) -> None:
    problem(await server.move("out", 1, code), 404, code)
    await server.create(code)
    await server.moved("in", 10.3, code)
    problem(await server.move("out", 99, code), 422, "insufficient stock: available 10.300, requested 99.000")
    problem(await server.move("IN", 1, code), 422, "type")
    for quantity in (0, -1, 0.0005, 1.0001, "1", None, True, 10_000_000):
        problem(await server.post("/movements", {"product_ean13": code, "type": "in", "quantity": quantity}), 422, "quantity")
    problem(await server.move("in", 1, "4006381333930"), 422, "check digit")
    problem(await server.move("in", 1, code, reason="x" * 201), 422, "reason")
    several = await server.post("/movements", {"product_ean13": "1", "type": "x", "quantity": 0})
    assert {error["pointer"] for error in several.body["errors"]} == {"#/product_ean13", "#/type", "#/quantity"}
    problem(await server.ask("POST", f"{API}/movements", data=b"{", headers={"Content-Type": "application/json"}), 400)
    problem(await server.ask("POST", f"{API}/movements", data=b"a=b", headers={"Content-Type": "text/plain"}), 415)
    assert await server.stock(code) == 10.3


async def test_no_update_is_lost(server: Server, code: str) -> None:
    await server.create(code)
    answers = await asyncio.gather(*(server.move("in", 1, code) for _ in range(200)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body["id"] for answer in answers}) == 200
    assert sorted(answer.body["stock_after"] for answer in answers) == list(range(1, 201))
    assert await server.stock(code) == 200


async def test_the_stock_is_never_negative(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 10, code)
    answers = await asyncio.gather(*(server.move("out", 1, code) for _ in range(40)))
    assert sorted(answer.status for answer in answers) == [201] * 10 + [422] * 30
    assert await server.stock(code) == 0
    movements = await server.get(f"/products/{code}/movements")
    assert sum(m["quantity"] * (1 if m["type"] == "in" else -1) for m in movements) == 0


async def test_edits_and_movements_lose_neither(server: Server, code: str) -> None:
    await server.create(code)
    edits = (server.ask("PUT", f"{API}/products/{code}", {"name": f"n{n}", "unit": "kg"}) for n in range(100))
    moves = (server.move("in", 1, code) for _ in range(100))
    answers = await asyncio.gather(*itertools.chain.from_iterable(zip(edits, moves, strict=True)))
    assert {answer.status for answer in answers} == {200, 201}
    last = max((answer for answer in answers if answer.status == 200), key=lambda answer: int(answer.headers["ETag"].strip('"')))
    product = await server.get(f"/products/{code}")
    assert (product["current_stock"], product["name"]) == (100, last.body["name"])


async def test_quantities_are_exact(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 0.1, code)
    await server.moved("in", 0.2, code)
    await server.moved("out", 0.3, code)
    assert await server.stock(code) == 0
    big = await server.moved("in", 9_999_999.999, code)
    assert big["quantity"] == 9_999_999.999
    problem(await server.move("in", 0.001, code), 422, "9999999.999")


async def test_one_instant_is_one_instant_however_it_is_written(server: Server, code: str) -> None:
    await server.create(code)
    for _ in range(4):
        await server.moved("in", 1, code)
    movements = await server.get(f"/products/{code}/movements")
    at = datetime.fromisoformat(movements[2]["created_at"])
    assert movements[2]["created_at"].endswith("Z")
    west, east = (at.astimezone(timezone(timedelta(hours=hours))).isoformat() for hours in (-3, 3))
    # The last one as a plus arrives that was not escaped.
    for text in (at.isoformat().replace("+00:00", "Z"), west, east.replace("+", "%2B"), east.replace("+", "%20")):
        for query, expected in ((f"from={text}", movements[:3]), (f"to={text}", movements[2:])):
            assert await server.get(f"/movements?ean13={code}&{query}") == expected, query
    for wrong in ("garbage", "2026-01-01", "2026-01-01T00:00:00"):
        problem(await server.ask("GET", f"{API}/movements?from={wrong}"), 400, "from")


async def test_a_movement_is_undone_once(server: Server, code: str) -> None:
    await server.create(code)
    bought = await server.moved("in", 5, code)
    undo = f"/movements/{bought['id']}/undo"
    answers = await asyncio.gather(*(server.post(undo, {"reason": "mistake"}) for _ in range(10)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 9
    reversal = next(answer.body for answer in answers if answer.status == 201)
    assert (reversal["type"], reversal["quantity"], reversal["reverses"]) == ("out", 5, bought["id"])
    assert (await server.get(f"/movements/{bought['id']}"))["reversed_by"] == reversal["id"]
    assert await server.stock(code) == 0
    again = await server.post(f"/movements/{reversal['id']}/undo")
    assert (again.status, await server.stock(code)) == (201, 5)
    await server.moved("out", 3, code)
    problem(await server.post(f"/movements/{again.body['id']}/undo"), 422, "insufficient stock: available 2.000, requested 5.000")
    problem(await server.post("/movements/00000000-0000-4000-8000-000000000000/undo"), 404)


async def test_a_stocktake_books_the_difference_and_the_past_stays(server: Server, code: str) -> None:
    await server.create(code, min_stock=3)
    await server.moved("in", 10, code)
    before = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    counted = await server.post(f"/products/{code}/count", {"counted": 2, "created_by": "Ada"})
    assert (counted.status, counted.body["difference"], counted.body["movement"]["counted"]) == (200, -8, 2)
    same = await server.post(f"/products/{code}/count", {"counted": 2})
    assert (same.body["difference"], "movement" in same.body) == (0, False)
    confirmed = await server.get(f"/products/{code}")
    assert confirmed["counted_at"] > before
    later = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    await server.ask("PUT", f"{API}/products/{code}", {"name": "renamed", "unit": "kg", "min_stock": 1})
    await server.ask("DELETE", f"{API}/products/{code}")
    now = await server.get(f"/products/{code}")
    assert (now["name"], now["current_stock"], now["active"]) == ("renamed", 2, False)
    then = await server.get(f"/products/{code}?as_of={before}")
    assert (then["name"], then["current_stock"], then["min_stock"], then["active"]) == (f"product {code}", 10, 3, True)
    assert "counted_at" not in then
    assert await server.get(f"/products/{code}?as_of={later}") == confirmed
    assert confirmed in await server.get(f"/products?as_of={later}")
    assert await server.get(f"/products/{code}/stock?as_of={before}") == {
        "current_stock": 10,
        "ean13": code,
        "is_low_stock": False,
        "min_stock": 3,
    }
    listed = {product["ean13"]: product for product in await server.get(f"/products?as_of={before}")}
    assert listed[code]["current_stock"] == 10
    report = await server.get(f"/reports/stock?as_of={before}")
    assert code in {item["product"]["ean13"] for item in report["items"]}
    assert code not in {item["product"]["ean13"] for item in (await server.get("/reports/stock"))["items"]}
    problem(await server.ask("GET", f"{API}/products/{code}?as_of=2000-01-01T00:00:00Z"), 404)
    problem(await server.post(f"/products/{code}/count", {"counted": -1}), 422, "counted")
