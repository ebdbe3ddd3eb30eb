"""Lists and reports: CSV, consumption, shopping, their periods and their cursors."""

from __future__ import annotations

import base64
import csv
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from pantry.http.reports import MOST_PRODUCTS
from projections.model import timestamp_text
from tests.pantry.api.answers import problem
from tests.support.pantry.system import API, Server

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


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


async def test_consumption_and_the_shopping_list(server: Server, code: str) -> None:
    await server.create(code, min_stock=2)
    wrong = await server.moved("in", 100, code)
    await server.post(f"/movements/{wrong['id']}/undo")
    await server.moved("in", 10, code)
    await server.moved("out", 9, code)
    await _created(server, code, days=40)
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


async def test_days_to_come_are_no_days_of_consumption(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 10, code)
    await server.moved("out", 4, code)
    await _created(server, code, days=40)
    now = datetime.now(UTC)
    begin, coming, later = (quote((now + timedelta(days=days)).isoformat()) for days in (-8, 100, 200))
    path = f"/reports/consumption?ean13={code}"
    for end in ("", f"&to={coming}"):
        [item] = await server.get(f"{path}&from={begin}{end}")
        assert item["per_day"] == pytest.approx(0.5, abs=0.01)
        assert item["days_left"] == pytest.approx(12, abs=0.1)
    [item] = await server.get(f"{path}&from={coming}&to={later}")
    assert (item["out"], item["per_day"], item["days_left"]) == (0, None, None)


async def test_consumption_per_day_is_not_known_until_a_product_was_observed_for_a_week(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 6, code)
    await server.moved("out", 4, code)
    [item] = await server.get(f"/reports/consumption?ean13={code}")
    assert (item["out"], item["per_day"], item["days_left"]) == (4, None, None)
    assert "not known yet" in item["unknown_because"]
    await _created(server, code, days=8)
    [item] = await server.get(f"/reports/consumption?ean13={code}")
    assert (item["per_day"], item["days_left"], item["unknown_because"]) == (0.5, 4, None)


async def test_a_stocktake_that_mends_a_wrong_booking_is_no_consumption(server: Server, code: str) -> None:
    await server.create(code, min_stock=1)
    await server.moved("in", 1000, code)
    await server.moved("out", 2, code)
    await server.post(f"/products/{code}/count", {"counted": 1})
    await _created(server, code, days=40)
    [item] = await server.get(f"/reports/consumption?ean13={code}")
    assert [item[name] for name in ("in", "out", "corrected", "net")] == [1000, 2, -997, 1]
    assert item["days_left"] == 14
    assert [item["suggested"] for item in await server.get("/reports/shopping-list") if item["ean13"] == code] == [1]


async def _created(server: Server, code: str, *, days: int) -> None:
    """Set the age of the product in the tables, once they have all movements: each writes the row of its product."""
    await server.get(f"/products/{code}")
    at = datetime.now(UTC) - timedelta(days=days)
    with closing(sqlite3.connect(server.database, timeout=10)) as tables, tables:
        tables.execute("UPDATE products SET created_at = ? WHERE ean13 = ?", (timestamp_text(at), code))


OTHERS = "name, description, unit, min_stock, current_stock, category_id, active, created_at, updated_at, counted_at, name_key"
MANY = f"""
WITH numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < {MOST_PRODUCTS})
INSERT INTO products SELECT printf('999999%07d', i), {OTHERS}, version, undos, sequence, scale
    FROM products, numbers WHERE ean13 = ?
"""


async def test_a_report_of_more_products_than_it_holds_is_refused(server: Server, code: str) -> None:
    """A part of the products would look like all of them."""
    await server.create(code, min_stock=1)
    with closing(sqlite3.connect(server.database, isolation_level=None)) as tables:
        tables.execute("BEGIN IMMEDIATE")
        try:
            tables.execute(MANY, (code,))
            tables.execute("COMMIT")
            for path, query in (("stock", "active=true"), ("low-stock", "active=true&low_stock=true")):
                for media in ("application/json", "text/csv"):
                    answer = await server.ask("GET", f"{API}/reports/{path}", headers={"Accept": media})
                    assert (answer.status, f"/products?{query}" in answer.body["detail"]) == (422, True)
        finally:
            tables.execute("DELETE FROM products WHERE ean13 LIKE '999999%'")
    assert (await server.get("/reports/stock"))["total_products"] > 0


async def test_undoing_an_undo_restores_the_movement_in_every_report(server: Server, code: str) -> None:
    await server.create(code, min_stock=7)
    await server.moved("in", 10, code)
    last = await server.moved("out", 4, code)
    for effective in (False, True, False, True):
        last = (await server.post(f"/movements/{last['id']}/undo")).body
        await _created(server, code, days=40)
        [item] = await server.get(f"/reports/consumption?ean13={code}")
        assert (item["in"], item["out"], item["current_stock"]) == ((10, 4, 6) if effective else (10, 0, 10))
        assert (item["days_left"] is not None) == effective


async def test_a_shopping_list_has_only_needed_products(server: Server, code: str) -> None:
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


async def test_a_period_that_begins_in_the_future_has_nothing_yet(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 3, code)
    later = "from=9999-12-31T00:00:00Z"
    assert await server.get(f"/movements?{later}") == []
    [item] = await server.get(f"/reports/consumption?ean13={code}&{later}")
    assert (item["in"], item["out"], item["per_day"], item["days_left"], item["current_stock"]) == (0, 0, None, None, 3)


@pytest.mark.parametrize("key", [["x", 1, 1], ["2026-01-01T00:00:00Z", 2**63, 1], ["0001-01-01T00:00:00+14:00", 1, 1]])
async def test_a_made_up_cursor_is_refused(server: Server, key: list[Any]) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).rstrip(b"=").decode()
    problem(await server.ask("GET", f"{API}/movements?cursor={cursor}"), 400, "cursor")


async def test_unknown_paths_and_methods_are_refused(server: Server) -> None:
    patched = await server.ask("PATCH", "/ping")
    problem(patched, 405)
    assert "GET" in patched.headers["Allow"]
    problem(await server.ask("GET", f"{API}/nothing"), 404)
    problem(await server.ask("DELETE", f"{API}/categories/none"), 405)
    alive = await server.ask("GET", "/ping")
    assert (alive.status, alive.body) == (200, {"status": "healthy", "service": "pantry"})
    metrics = (await server.ask("GET", "/metrics")).body
    assert "projection_position" in metrics
