"""Requests of clients of the first pantry program work as they did with it (docs/guides/pantry.md lists differences)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.support.pantry.system import API, Server, pantry_system

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
"""The default of curl."""


@attrs.frozen
class Exchange:
    """A request, and the status and the members of the answer that clients rely on. `{code}` is a product in stock."""

    method: str
    path: str
    status: int
    body: Any = None
    headers: dict[str, str] = attrs.field(factory=dict)
    answer: dict[str, Any] = attrs.field(factory=dict)


EXCHANGES = [
    Exchange("GET", "/products?category=", 200),
    Exchange("GET", "/products?active=", 200),
    *(
        Exchange("GET", f"/products?active={text}", 200)
        for text in ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "False")
    ),
    Exchange("GET", "/movements?type=&from=&to=", 200),
    Exchange("GET", "/products/{code}/movements?type=&from=&to=", 200),
    Exchange("GET", "/categories/", 200),
    Exchange("GET", "/products/{code}/", 200, answer={"current_stock": 5}),
    Exchange("GET", "/reports/stock/", 200),
    Exchange("PUT", "/products/{code}", 200, {"name": "Oats", "unit": "kg", "description": None, "min_stock": None}),
    Exchange("POST", "/categories", 201, {"name": "Baking", "description": None}, answer={"description": ""}),
    Exchange(
        "POST",
        "/movements",
        201,
        {"product_ean13": "{code}", "type": "in", "quantity": 0.5},
        FORM,
        {"type": "in", "quantity": 0.5},
    ),
    Exchange("PUT", "/products/{code}", 200, {"name": "Rye", "unit": "kg"}, FORM, {"min_stock": 0, "description": ""}),
    Exchange("PUT", "/products/{code}", 200, {"name": "Rye", "unit": "kg", "ean13": "x", "active": False, "current_stock": 9}),
]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda one: f"{one.method} {one.path} {one.headers and 'form'}")
async def test_a_request_of_a_client_of_the_first_program_works(server: Server, code: str, exchange: Exchange) -> None:
    await server.create(code)
    await server.moved("in", 5, code)
    body = exchange.body
    if isinstance(body, dict):
        body = {name: code if value == "{code}" else value for name, value in body.items()}
    answer = await server.ask(exchange.method, API + exchange.path.format(code=code), body, headers=exchange.headers)
    assert answer.status == exchange.status, answer
    assert {name: answer.body[name] for name in exchange.answer} == exchange.answer


async def test_an_empty_filter_is_no_filter(server: Server, code: str) -> None:
    await server.create(code)
    await server.moved("in", 5, code)
    assert await server.get("/products?category=&active=") == await server.get("/products")
    assert await server.get("/movements?type=&from=&to=") == await server.get("/movements")
    kept = {product["ean13"] for product in await server.get("/products?active=T")}
    assert code in kept
    assert code not in {product["ean13"] for product in await server.get("/products?active=f")}


async def test_an_unknown_filter_is_refused_and_the_like_one_is_named(server: Server) -> None:
    answer = await server.ask("GET", f"{API}/products?low_stok=true")
    assert answer.status == 400
    assert "did you mean low_stock?" in str(answer.body)


async def test_the_log_level_has_the_first_programs_spelling(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with pantry_system(tmp_path_factory.mktemp("warn"), PANTRY_LOG_LEVEL="warn") as system:
        assert (await system.one.ask("GET", "/ping/")).body == {"status": "healthy", "service": "pantry"}


async def test_a_list_of_more_than_a_thousand_entries_goes_on_at_its_link(server: Server, code: str) -> None:
    await server.create(code)
    rows = [{"product_ean13": code, "type": "in", "quantity": 1}] * 1001
    assert (await server.post("/movements:batch", rows)).body["accepted"] == 1001
    page = await server.ask("GET", f"{API}/movements?ean13={code}")
    address = page.headers["Link"].partition("<")[2].partition(">")[0]
    rest = await server.ask("GET", address)
    assert [len(answer.body) for answer in (page, rest)] == [1000, 1]
    assert len({movement["id"] for movement in page.body + rest.body}) == 1001
    assert "Link" not in rest.headers
