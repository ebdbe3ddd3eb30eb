"""Subscriptions over Server-Sent Events, on a running pantry: graphql-sse's form, cuts, many subscribers, refusals."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import attrs
import pytest
import pytest_asyncio

from pantry.domain.ean13 import check_digit
from tests.httpkit.eventsource import Event, EventSource
from tests.support.pantry.system import Server, pantry_system
from tests.support.waiting import wait_until
from tests.support.web.graphql import Gateway, gateway

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

MOST = 210
EVENTS = {"Accept": "text/event-stream"}
STOCK = "subscription { stockChanged { product { ean13 quantity movements(first: 20) { nodes { id } } } movement { id } } }"


@attrs.frozen
class Running:
    """A pantry, the gateway, and a client without a bound on connections."""

    pantry: Server
    gateway: Gateway
    http: aiohttp.ClientSession

    def source(self, subscription: str) -> EventSource:
        """A client of a subscription, as a browser's EventSource is one."""
        return EventSource(self.http, f"/function/pantry?query={quote(subscription)}")

    async def product(self, number: int) -> str:
        """A new product that is low from 2 down."""
        first = f"{410000000000 + number}"
        code = f"{first}{check_digit(first)}"
        await self.pantry.create(code, min_stock=2)
        return code

    async def book(self, code: str, count: int) -> list[str]:
        """Book movements one after the other; gives their ids."""
        return [(await self.pantry.moved("in", 1, code))["id"] for _ in range(count)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    directory = tmp_path_factory.mktemp("subscriptions")
    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(pantry_system(directory))
        served = await stack.enter_async_context(
            gateway(
                directory,
                GRAPHQL_PANTRY_DATABASE=f"sqlite:{system.one.database}",
                GRAPHQL_NATS_URL=system.nats.url,
                GRAPHQL_MAX_SUBSCRIBERS=str(MOST),
            )
        )
        http = await stack.enter_async_context(
            aiohttp.ClientSession(
                served.url, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None, sock_connect=30)
            )
        )
        await wait_until(lambda: _is_ready(served), 30, every=0.05)
        yield Running(system.one, served, http)


async def _is_ready(served: Gateway) -> bool:
    return (await served.ask("GET", "/readyz")).status == 200


def data_of(events: Sequence[Event]) -> list[Any]:
    return [json.loads(event.data)["data"] for event in events]


async def subscribers(running: Running) -> float:
    text = str((await running.gateway.ask("GET", "/metrics")).body)
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("graphql_subscribers "))


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_subscription_that_is_cut_and_resumed_misses_nothing_and_doubles_nothing(running: Running, seed: int) -> None:
    code = await running.product(seed)
    dice = random.Random(seed)
    source = running.source(STOCK)
    async with source.connected(**EVENTS):
        await wait_until(lambda: subscribers(running), 10)
        booking = asyncio.create_task(running.book(code, 60))
        seen = data_of(await source.take(3, within=20))
    while len(seen) < 60:
        async with source.connected(**EVENTS):
            seen += data_of(await source.take(min(60 - len(seen), dice.randrange(1, 12)), within=20))
    booked = await booking
    assert [event["stockChanged"]["movement"]["id"] for event in seen] == booked
    assert [event["stockChanged"]["product"]["quantity"] for event in seen] == [str(number) for number in range(1, 61)]


async def test_data_read_with_an_event_is_not_older_than_the_event(running: Running) -> None:
    code = await running.product(10)
    source = running.source(STOCK)
    async with source.connected(**EVENTS):
        await running.book(code, 15)
        for event in data_of(await source.take(15, within=20)):
            change = event["stockChanged"]
            assert change["movement"] in change["product"]["movements"]["nodes"]


async def test_tables_that_are_made_again_meanwhile_are_looked_at(running: Running) -> None:
    code = await running.product(77)
    source = running.source(STOCK)
    async with source.connected(**EVENTS):
        await wait_until(lambda: subscribers(running), 60)
        rebuilding = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("projections"), "rebuild", "pantry"),
            env={**running.pantry.environment, "GCTD_NATS_URL": running.pantry.environment["PANTRY_NATS_URL"]},
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await rebuilding.wait() == 0
        booked = await running.book(code, 3)
        seen = data_of(await source.take(3, within=60))
    assert [event["stockChanged"]["movement"]["id"] for event in seen] == booked
    query = f'{{ product(ean13: "{code}") {{ quantity }} }}'
    read = await running.gateway.ask("POST", "/function/pantry", data=query)
    assert read.body["data"] == {"product": {"quantity": "3"}}


async def test_two_hundred_subscribers_are_given_every_event(running: Running) -> None:
    code = await running.product(20)
    other = await running.product(21)
    subscription = f'subscription {{ stockChanged(ean13: ["{code}"]) {{ movement {{ id }} }} }}'
    sources = [running.source(subscription) for _ in range(200)]
    async with AsyncExitStack() as stack:
        for source in sources:
            await stack.enter_async_context(source.connected(**EVENTS))
        await wait_until(lambda: _counts(running, 200), 20)
        following = [asyncio.create_task(source.take(10, within=60)) for source in sources]
        await running.book(other, 3)
        booked = await running.book(code, 10)
        assert (await running.gateway.post("{ hello }")).status == 200
        for found in await asyncio.gather(*following):
            assert [event["stockChanged"]["movement"]["id"] for event in data_of(found)] == booked
    await wait_until(lambda: _counts(running, 0), 20)


async def _counts(running: Running, number: int) -> bool:
    return await subscribers(running) == number


async def test_low_stock_is_told_in_both_directions(running: Running) -> None:
    code = await running.product(30)
    source = running.source(f'subscription {{ lowStockChanged(ean13: ["{code}"]) {{ isLowStock product {{ quantity }} }} }}')
    async with source.connected(**EVENTS):
        for type_, quantity in (("in", 3), ("in", 1), ("out", 2), ("out", 1), ("in", 5)):
            await running.pantry.moved(type_, quantity, code)
        found = [event["lowStockChanged"] for event in data_of(await source.take(3, within=20))]
    assert found == [
        {"isLowStock": False, "product": {"quantity": "3"}},
        {"isLowStock": True, "product": {"quantity": "2"}},
        {"isLowStock": False, "product": {"quantity": "6"}},
    ]


async def test_a_subscription_begins_with_an_id_from_which_it_can_be_resumed(running: Running) -> None:
    """Cut off before its first event, a client has missed nothing either."""
    code = await running.product(40)
    source = running.source(STOCK)
    async with source.connected(**EVENTS) as connected:
        assert connected._response is not None
        line = await asyncio.wait_for(connected._response.content.readline(), 60)
        assert line.startswith(b"id: ")
        source.last_id = line.decode().removeprefix("id: ").strip()
    [booked] = await running.book(code, 1)
    async with source.connected(**EVENTS):
        [event] = data_of(await source.take(1, within=20))
    assert event["stockChanged"]["movement"]["id"] == booked


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("subscription { stockChanged { nothing } }", "Cannot query field 'nothing' on type 'StockChange'."),
        ("subscription { stockChanged {", "Syntax Error: Expected Name, found <EOF>."),
        ("{ product(ean13: 1) { name } }", "String cannot represent a non string value: 1"),
    ],
)
async def test_an_error_comes_as_a_result_and_the_stream_is_complete(running: Running, query: str, message: str) -> None:
    async with running.http.post("/function/pantry", json={"query": query}, headers=EVENTS) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        text = await asyncio.wait_for(answer.text(), 60)
    first, last, rest = text.split("\n\n")
    assert (last, rest) == ("event: complete\ndata:", "")
    name, _, data = first.partition("\ndata: ")
    assert (name, list(json.loads(data))) == ("event: next", ["errors"])
    assert json.loads(data)["errors"][0]["message"].startswith(message)


async def test_a_query_may_be_answered_with_events_too(running: Running) -> None:
    for function, query in (("graphql", "{ hello }"), ("pantry", "{ stockReport { totalProducts } }")):
        async with running.http.post(f"/function/{function}", data=query, headers=EVENTS) as answer:
            events = (await asyncio.wait_for(answer.text(), 60)).split("\n\n")
        assert [event.partition("\n")[0] for event in events] == ["event: next", "event: complete", ""]
        assert '"data":{' in events[0]


@pytest.mark.parametrize("place", ["999999", "sometime"])
async def test_a_place_that_the_log_does_not_have_is_said(running: Running, place: str) -> None:
    source = running.source(STOCK)
    source.last_id = place
    async with source.connected(**EVENTS):
        found = await source.rest(within=20)
    assert [event.name for event in found] == ["next", "complete"]
    assert "Last-Event-ID" in found[0].data or "999999" in found[0].data


async def test_more_subscribers_than_are_taken_on_are_refused(running: Running) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            await stack.enter_async_context(running.source(STOCK).connected(**EVENTS))
        async with running.http.post("/function/pantry", json={"query": STOCK}, headers=EVENTS) as answer:
            assert (answer.status, "follow something" in await answer.text()) == (503, True)
    await wait_until(lambda: _counts(running, 0), 20)


async def test_without_events_a_subscription_is_refused_and_bodies_that_are_no_requests_are_too(running: Running) -> None:
    async with running.http.post("/function/pantry", json={"query": STOCK}) as answer:
        assert "text/event-stream" in (await answer.json())["errors"][0]["message"]
    async with running.http.post("/function/pantry", json={"query": 1}, headers=EVENTS) as answer:
        assert (answer.status, answer.content_type) == (400, "application/json")
    async with running.http.post("/function/none", json={"query": STOCK}, headers=EVENTS) as answer:
        assert answer.status == 404


async def test_the_metrics_count_the_statements_of_the_database(running: Running) -> None:
    async def statements() -> float:
        text = str((await running.gateway.ask("GET", "/metrics")).body)
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("graphql_statements_total{"))

    before = await statements()
    async with running.http.post("/function/pantry", data="{ categories { nodes { products { nodes { name } } } } }") as answer:
        assert answer.status == 200
    assert await statements() - before in {1, 2}  # without categories there is nothing more to ask
