"""The pantry's API on a running server: statuses, fields and rules."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.pantry.system import API, PantrySystem, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

_NAMES = itertools.count(1)


def name() -> str:
    """Return an unused name for a category."""
    return f"category {next(_NAMES)}"


def problem(answer: Any, status: int, text: str = "") -> None:
    """An error as every one is: a problem document with the key `error`."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.body["error"] == answer.body["detail"]
    assert text in answer.body["error"], answer.body


# Products


async def test_a_product_from_creation_to_its_end(server: Server, code: str) -> None:
    path = f"/products/{code}"
    made = await server.post(path, {"name": "Flour", "unit": "kg", "min_stock": 2.5})
    assert made.status == 201
    assert made.headers["Location"] == API + path
    assert {key: made.body[key] for key in ("ean13", "name", "description", "unit", "min_stock", "current_stock", "active")} == {
        "ean13": code,
        "name": "Flour",
        "description": "",
        "unit": "kg",
        "min_stock": 2.5,
        "current_stock": 0,
        "active": True,
    }
    assert "category_id" not in made.body
    assert await server.get(path) == made.body
    problem(await server.post(path, {"name": "Flour", "unit": "kg"}), 409, code)
    edited = await server.ask("PUT", API + path, {"name": "Rye", "unit": "kg", "description": "a\nb"})
    assert (edited.status, edited.body["name"], edited.body["description"], edited.body["min_stock"]) == (200, "Rye", "a\nb", 0)
    for _ in range(2):
        gone = await server.ask("DELETE", API + path)
        assert (gone.status, gone.body) == (204, "")
    assert (await server.get(path))["active"] is False
    assert (await server.move("in", 1, code)).status == 201
    back = await server.post(f"{path}/activate")
    assert (back.status, back.body["active"]) == (200, True)
    assert await server.get(f"{path}/stock") == {"current_stock": 1, "ean13": code, "is_low_stock": False, "min_stock": 0}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "name"),
    ({"name": "", "unit": "kg"}, "name"),
    ({"name": " ", "unit": "kg"}, "name"),
    ({"name": "x" * 201, "unit": "kg"}, "name"),
    ({"name": "a\u0000", "unit": "kg"}, "name"),
    ({"name": "a", "unit": "x" * 31}, "unit"),
    ({"name": "a"}, "unit"),
    ({"name": "a", "unit": "kg", "min_stock": -1}, "min_stock"),
    ({"name": "a", "unit": "kg", "min_stock": 0.0005}, "3 decimal places"),
    ({"name": "a", "unit": "kg", "min_stock": "2"}, "min_stock"),
    ({"name": "a", "unit": "kg", "min_stock": 1e300}, "9999999.999"),
    ({"name": "a", "unit": "kg", "category_id": "none"}, "category_id"),
]


@pytest.mark.parametrize(("document", "text"), WRONG)
async def test_a_product_that_cannot_be_is_422_for_post_and_put(
    server: Server, code: str, document: dict[str, Any], text: str
) -> None:
    problem(await server.post(f"/products/{code}", document), 422, text)
    await server.create(code)
    problem(await server.ask("PUT", f"{API}/products/{code}", document), 422, text)


@pytest.mark.parametrize("wrong", ["4006381333930", "400638133393", "4006381333931%20", "abc"])
async def test_a_code_with_a_wrong_check_digit_is_422_where_it_is_written_and_404_where_it_is_read(
    server: Server, wrong: str
) -> None:
    document = {"name": "a", "unit": "kg"}
    problem(await server.post(f"/products/{wrong}", document), 422, "EAN-13")
    problem(await server.ask("PUT", f"{API}/products/{wrong}", document), 422, "EAN-13")
    problem(await server.ask("GET", f"{API}/products/{wrong}"), 404)
    problem(await server.ask("DELETE", f"{API}/products/{wrong}"), 404)


async def test_an_edit_may_insist_on_the_version_it_has_seen(server: Server, code: str) -> None:
    await server.create(code)
    path = f"{API}/products/{code}"
    first = await server.ask("GET", path)
    tag = first.headers["ETag"]
    assert (await server.ask("GET", path, headers={"If-None-Match": tag})).status == 304
    await server.moved("in", 1, code)
    assert (await server.ask("GET", path, headers={"If-None-Match": tag})).status == 200
    document = {"name": "other", "unit": "kg"}
    problem(await server.ask("PUT", path, document, headers={"If-Match": tag}), 412, "version 2, not 1")
    assert (await server.ask("PUT", path, document, headers={"If-Match": '"2"'})).status == 200
    problem(await server.ask("DELETE", path, headers={"If-Match": '"2"'}), 412)


async def test_products_are_listed_by_name_filtered_and_paged(server: Server, new_code: Callable[[], str]) -> None:
    category = (await server.post("/categories", {"name": name()})).body["id"]
    codes = {text: new_code() for text in ("Äpfel", "apfelmus", "Birnen", "Zimt", "äthiopischer Kaffee")}
    for text, code in codes.items():
        await server.create(code, name=text, category_id=category, min_stock=1)
    await server.moved("in", 5, codes["Birnen"])
    await server.ask("DELETE", f"{API}/products/{codes['Zimt']}")

    async def names(query: str) -> list[str]:
        return [product["name"] for product in await server.get(f"/products?category={category}{query}")]

    assert await names("") == ["Äpfel", "apfelmus", "äthiopischer Kaffee", "Birnen", "Zimt"]
    assert await names("&active=true") == ["Äpfel", "apfelmus", "äthiopischer Kaffee", "Birnen"]
    assert await names("&active=false") == ["Zimt"]
    assert await names("&low_stock=false") == ["Birnen"]
    assert await names("&low_stock=true&active=true") == ["Äpfel", "apfelmus", "äthiopischer Kaffee"]
    assert await names("&search=APFEL") == ["Äpfel", "apfelmus"]
    assert await names("&search=%25") == []
    assert await names(f"&search={codes['Birnen'][:12]}") == ["Birnen"]
    page = await server.ask("GET", f"{API}/products?category={category}&limit=2")
    seen, link = [product["name"] for product in page.body], page.headers.get("Link")
    while link:
        page = await server.ask("GET", link[1 : link.index(">")])
        seen += [product["name"] for product in page.body]
        link = page.headers.get("Link")
    assert seen == await names("")
    for wrong in ("active=maybe", "low_stock=2", "limit=0", "cursor=x", "as_of=yesterday"):
        problem(await server.ask("GET", f"{API}/products?{wrong}"), 400, wrong.partition("=")[0])


# Categories


async def test_a_category_and_its_name(server: Server) -> None:
    first, second = name(), name()
    made = await server.post("/categories", {"name": first})
    assert made.status == 201
    assert set(made.body) == {"id", "name", "description", "created_at"}
    path = made.headers["Location"]
    assert (await server.ask("GET", path)).body == made.body
    problem(await server.post("/categories", {"name": first}), 409, first)
    problem(await server.post("/categories", {"name": "x" * 101}), 422, "name")
    problem(await server.post("/categories", {}), 422, "name")
    problem(await server.ask("GET", f"{API}/categories/none"), 404)
    renamed = await server.ask("PUT", path, {"name": second, "description": "d"})
    assert (renamed.status, renamed.body["name"], renamed.body["description"]) == (200, second, "d")
    taken = await server.post("/categories", {"name": first})
    assert taken.status == 201, "the old name is free"
    problem(await server.ask("PUT", path, {"name": first}), 409, first)
    problem(await server.ask("PUT", f"{API}/categories/00000000-0000-4000-8000-000000000000", {"name": name()}), 404)
    listed = [category["name"] for category in await server.get("/categories")]
    assert listed == sorted(listed, key=str.casefold)
    assert {first, second} <= set(listed)


async def test_of_a_hundred_claims_to_a_name_one_succeeds(server: Server) -> None:
    wanted = name()
    answers = await asyncio.gather(*(server.post("/categories", {"name": wanted}) for _ in range(100)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 99
    assert [category["name"] for category in await server.get("/categories")].count(wanted) == 1


async def test_of_many_that_want_to_be_renamed_to_one_name_one_succeeds(server: Server) -> None:
    wanted = name()
    made = [(await server.post("/categories", {"name": name()})).headers["Location"] for _ in range(20)]
    answers = await asyncio.gather(*(server.ask("PUT", path, {"name": wanted}) for path in made))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 19


# Movements


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
    product = await server.get(f"/products/{code}")
    assert (product["current_stock"], product["name"]) == (100, "n99")


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


# Idempotency


async def test_a_key_takes_effect_once_however_often_it_comes(server: Server, running: PantrySystem, code: str) -> None:
    await server.create(code)
    document = {"product_ean13": code, "type": "in", "quantity": 1}
    headers = {"Idempotency-Key": f"key-{code}"}
    answers = await asyncio.gather(*(server.post("/movements", document, **headers) for _ in range(20)))
    assert {answer.status for answer in answers} == {201}
    assert len({json.dumps(answer.body, sort_keys=True) for answer in answers}) == 1
    problem(await server.post("/movements", {**document, "quantity": 2}, **headers), 422, "key")
    await server.kill()
    await server.start()
    again = await server.post("/movements", document, **headers)
    assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (201, answers[0].body, "true")
    assert await server.stock(code) == 1
    assert (
        len([event for event in await running.events(f"pantry.product.{code}") if type(event).__name__ == "MovementRecorded"])
        == 1
    )


async def test_every_post_takes_a_key(server: Server, new_code: Callable[[], str]) -> None:
    code, wanted = new_code(), name()
    calls: list[tuple[str, Any]] = [
        ("/categories", {"name": wanted}),
        (f"/products/{code}", {"name": "a", "unit": "kg"}),
        ("/movements", {"product_ean13": code, "type": "in", "quantity": 7}),
        (f"/products/{code}/count", {"counted": 5}),
        (f"/products/{code}/count", {"counted": 5}),
        (f"/products/{code}/activate", {}),
    ]
    for number, (path, document) in enumerate(calls):
        headers = {"Idempotency-Key": f"{code}-{number}"}
        first = await server.post(path, document, **headers)
        second = await server.post(path, document, **headers)
        assert first.status == second.status < 300, (path, first, second)
        assert first.body == second.body, path
    movement = (await server.get(f"/products/{code}/movements"))[-1]["id"]
    headers = {"Idempotency-Key": f"{code}-undo"}
    await server.moved("in", 10, code)
    undone = [await server.post(f"/movements/{movement}/undo", **headers) for _ in range(2)]
    assert [answer.status for answer in undone] == [201, 201]
    assert undone[0].body == undone[1].body
    assert await server.stock(code) == 8


async def test_what_changed_nothing_changes_nothing_when_it_is_repeated(server: Server, code: str) -> None:
    await server.create(code)
    before = await server.get(f"/products/{code}")
    headers = {"Idempotency-Key": f"{code}-active"}
    first = await server.post(f"/products/{code}/activate", {}, **headers)
    assert first.body == before == await server.get(f"/products/{code}")
    await server.ask("DELETE", f"{API}/products/{code}")
    again = await server.post(f"/products/{code}/activate", {}, **headers)
    assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (200, first.body, "true")
    assert (await server.get(f"/products/{code}"))["active"] is False


# Further features


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
    assert (await server.get(f"/products/{code}"))["counted_at"] > before
    await server.ask("PUT", f"{API}/products/{code}", {"name": "renamed", "unit": "kg", "min_stock": 1})
    await server.ask("DELETE", f"{API}/products/{code}")
    now = await server.get(f"/products/{code}")
    assert (now["name"], now["current_stock"], now["active"]) == ("renamed", 2, False)
    then = await server.get(f"/products/{code}?as_of={before}")
    assert (then["name"], then["current_stock"], then["min_stock"], then["active"]) == (f"product {code}", 10, 3, True)
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


async def test_lists_and_reports_come_as_csv_too(server: Server, code: str) -> None:
    await server.create(code, name='say "hi", you', min_stock=1)
    await server.moved("in", 0.5, code)
    for path in ("/categories", "/products", "/movements", f"/products/{code}/movements"):
        document = await server.get(path)
        answer = await server.ask("GET", API + path, headers={"Accept": "text/csv"})
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert len(list(csv.DictReader(io.StringIO(answer.body)))) == len(document)
    for path in ("stock", "low-stock", "consumption", "shopping-list"):
        answer = await server.ask("GET", f"{API}/reports/{path}", headers={"Accept": "text/csv;q=1, application/json;q=0.5"})
        rows = list(csv.DictReader(io.StringIO(answer.body)))
        own = next(row for row in rows if code in row.values())
        assert 'say "hi", you' in own.values()
    assert (await server.ask("GET", f"{API}/products", headers={"Accept": "*/*"})).headers["Content-Type"] == "application/json"


async def test_what_was_used_and_what_to_buy(server: Server, code: str) -> None:
    await server.create(code, min_stock=2)
    wrong = await server.moved("in", 100, code)
    await server.post(f"/movements/{wrong['id']}/undo")
    await server.moved("in", 10, code)
    await server.moved("out", 9, code)
    [item] = await server.get(f"/reports/consumption?ean13={code}")
    assert (item["in"], item["out"], item["net"], item["current_stock"]) == (10, 9, 1, 1)
    assert item["days_left"] == pytest.approx(28 / 9, abs=0.1)
    buy = next(item for item in await server.get("/reports/shopping-list") if item["ean13"] == code)
    assert buy["suggested"] == 8
    low = {product["ean13"] for product in await server.get("/reports/low-stock")}
    assert code in low
    report = await server.get("/reports/stock")
    assert report["low_stock_products"] == sum(item["is_low_stock"] for item in report["items"])
    assert report["total_products"] == len(report["items"])


async def test_undoing_an_undo_restores_the_movement_in_every_report(server: Server, code: str) -> None:
    await server.create(code, min_stock=7)
    await server.moved("in", 10, code)
    last = await server.moved("out", 4, code)
    for effective in (False, True, False, True):
        last = (await server.post(f"/movements/{last['id']}/undo")).body
        [item] = await server.get(f"/reports/consumption?ean13={code}")
        assert (item["in"], item["out"], item["current_stock"]) == ((10, 4, 6) if effective else (10, 0, 10))
        assert (item["days_left"] is not None) == effective


async def test_a_shopping_list_has_only_what_is_needed(server: Server, code: str) -> None:
    await server.create(code, min_stock=0)
    assert code not in {item["ean13"] for item in await server.get("/reports/shopping-list")}
    await server.moved("in", 3, code)
    await server.moved("out", 3, code)
    assert [item["suggested"] for item in await server.get("/reports/shopping-list") if item["ean13"] == code] == [3]


@pytest.mark.parametrize("parameter", ["as_of", "from", "to"])
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-12:00"])
async def test_a_time_beyond_the_calendar_is_refused(server: Server, code: str, parameter: str, time: str) -> None:
    paths = ("/products", "/reports/stock") if parameter == "as_of" else ("/movements", "/reports/consumption")
    for path in paths:
        problem(await server.ask("GET", f"{API}{path}?{parameter}={time}"), 400, parameter)


async def test_a_period_may_begin_at_the_first_day_of_the_calendar_and_must_not_end_before_it_begins(server: Server) -> None:
    for path in ("/movements", "/reports/consumption"):
        assert (await server.ask("GET", f"{API}{path}?to=0001-01-02T00:00:00Z")).status == 200
        turned = f"{API}{path}?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z"
        problem(await server.ask("GET", turned), 400, "must not be after")


@pytest.mark.parametrize("key", [["x", 1, 1], ["2026-01-01T00:00:00Z", 2**63, 1], ["0001-01-01T00:00:00+14:00", 1, 1]])
async def test_a_made_up_cursor_is_refused(server: Server, key: list[Any]) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).rstrip(b"=").decode()
    problem(await server.ask("GET", f"{API}/movements?cursor={cursor}"), 400, "cursor")


async def test_what_nobody_serves(server: Server) -> None:
    patched = await server.ask("PATCH", "/ping")
    problem(patched, 405)
    assert "GET" in patched.headers["Allow"]
    problem(await server.ask("GET", f"{API}/nothing"), 404)
    problem(await server.ask("DELETE", f"{API}/categories/none"), 405)
    alive = await server.ask("GET", "/ping")
    assert (alive.status, alive.body) == (200, {"status": "healthy", "service": "pantry"})
    metrics = (await server.ask("GET", "/metrics")).body
    assert "projection_position" in metrics
