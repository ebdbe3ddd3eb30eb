"""Kept answers: given again while the tables are in one state, behind the checks of their route, and never from another state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio

from httpkit.edge import KeptAnswers
from httpkit.routes import Answer, Call, Route
from httpkit.server.guard import Guard
from tests.httpkit.raw import ask
from tests.httpkit.shop import TABLE, Running, Shop, TablesAt, Thing, ThingId, open_shop, thing

pytestmark = pytest.mark.real


@attrs.define
class Tables:
    """The tables of a test: `made` counts the answers that were made from them."""

    state: object = 1
    position: int = 7
    made: int = 0
    changes_while_read: bool = False


@pytest.fixture
def tables() -> Tables:
    return Tables()


def table(tables: Tables) -> tuple[Route[Shop], ...]:
    """The route table of a shop, with answers that change at each time they are made."""

    async def show_thing(request: ThingId, _: Call[Shop]) -> Answer[Thing]:
        tables.made += 1
        if tables.changes_while_read:
            tables.state = object()
        plain = thing(int(request.id[1:]))
        return Answer(Thing(id=plain.id, name=f"made {tables.made}", made_at=plain.made_at), etag=f"v{tables.made}")

    first = Route("GET", "/things/{id}", show_thing, summary="A thing", also=(304,), kept=True)
    return first, *(route for route in TABLE if (route.method, route.path) != ("GET", "/things/{id}"))


def keeping(tables: Tables, **how: Any) -> KeptAnswers:
    return KeptAnswers(lambda: tables.state, lambda: tables.position, **how)


@pytest_asyncio.fixture
async def shop(tables: Tables) -> AsyncIterator[Running]:
    async with open_shop(table=table(tables), kept=keeping(tables), tables=TablesAt(lambda: tables.position)) as running:
        yield running


async def name(shop: Running, path: str = "/things/t1", **how: Any) -> str:
    async with shop.http.get(path, **how) as response:
        assert response.status == 200
        return str((await response.json())["name"])


def lasting(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers that are the same in all answers to one request."""
    passing = {"event-sequence", "x-request-id", "server-timing", "date"}
    return {name: value for name, value in response.headers.items() if name.lower() not in passing}


async def test_an_answer_is_given_again_while_the_tables_are_the_same(shop: Running, tables: Tables) -> None:
    assert [await name(shop), await name(shop)] == ["made 1", "made 1"]
    tables.state = 2
    assert [await name(shop), await name(shop)] == ["made 2", "made 2"]
    assert await name(shop, "/things/t2") == "made 3"


async def test_a_kept_answer_names_the_position_and_the_request_of_now(shop: Running, tables: Tables) -> None:
    async with shop.http.get("/things/t1") as first:
        assert first.headers["Event-Sequence"] == "7"
    tables.position = 9
    async with shop.http.get("/things/t1", headers={"X-Request-Id": "abc-1"}) as again:
        assert again.headers["Event-Sequence"] == "9"
        assert again.headers["X-Request-Id"] == "abc-1"
    assert lasting(again) == lasting(first)
    assert tables.made == 1


async def test_no_answer_is_kept_of_tables_in_an_unknown_state(shop: Running, tables: Tables) -> None:
    tables.state = None
    assert [await name(shop), await name(shop)] == ["made 1", "made 2"]


async def test_an_answer_that_was_made_while_the_tables_changed_is_not_kept(shop: Running, tables: Tables) -> None:
    tables.changes_while_read = True
    assert [await name(shop), await name(shop)] == ["made 1", "made 2"]


async def test_requests_with_conditions_and_waits_are_answered_anew(shop: Running, tables: Tables) -> None:
    await name(shop)
    async with shop.http.get("/things/t1", headers={"If-None-Match": '"v2"'}) as response:
        assert response.status == 304
    assert await name(shop, "/things/t1?min_seq=7") == "made 3"
    async with shop.http.head("/things/t1") as response:
        assert (response.status, await response.read()) == (200, b"")
    assert tables.made == 4


async def test_a_kept_answer_is_complete_on_a_connection_that_ends_with_it(shop: Running, tables: Tables) -> None:
    await name(shop)
    answer = await ask(shop.port, "GET /things/t1")
    assert b"made 1" in answer.body
    assert answer.headers["event-sequence"] == "7"
    assert tables.made == 1


async def test_the_checks_of_the_route_come_before_a_kept_answer(tables: Tables) -> None:
    guard = Guard(token="secret")
    async with open_shop(table=table(tables), kept=keeping(tables), guard=guard) as shop:
        known = {"Authorization": "Bearer secret"}
        assert [await name(shop, headers=known), await name(shop, headers=known)] == ["made 1", "made 1"]
        async with shop.http.get("/things/t1") as response:
            assert response.status == 401
        async with shop.http.get("/metrics", headers=known) as response:
            text = await response.text()
        assert 'http_requests_total{method="GET",route="/things/{id}",status="200"} 2.0' in text
        assert 'http_requests_total{method="GET",route="/things/{id}",status="401"} 1.0' in text


async def test_kept_answers_have_a_limit_of_bytes(tables: Tables) -> None:
    async with open_shop(table=table(tables), kept=keeping(tables, most_bytes=2500)) as shop:
        assert [await name(shop, f"/things/t{number}") for number in (1, 2, 1, 3, 1)] == [
            "made 1",
            "made 2",
            "made 1",
            "made 3",  # there is no room for a third: the others are forgotten
            "made 4",
        ]


async def test_an_answer_names_the_sequence_of_the_moment_that_it_shows(tables: Tables) -> None:
    """Also a kept one, while the process knows an older position only."""
    async with open_shop(table=table(tables), kept=keeping(tables), tables=TablesAt(lambda: 8)) as shop:
        for _ in range(2):
            async with shop.http.get("/things/t1") as response:
                assert response.headers["Event-Sequence"] == "8"
    assert tables.made == 1
