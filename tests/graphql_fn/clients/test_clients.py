"""Clients of GraphQL, each with its defaults, on a running pantry: queries, fragments, pages, subscriptions, errors, types."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from gql import Client, gql
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError
from graphql import print_schema

from graphql_fn.readmodels.pantry.function import SCHEMA
from pantry.domain.ean13 import check_digit
from tests.support.pantry.system import Server, pantry_system
from tests.support.waiting import wait_until
from tests.support.web.graphql import Gateway, gateway
from tests.support.web.node import install, node

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]

SCRIPTS = Path(__file__).parent
NAMES = ["apples", "bread", "cheese", "dates"]


@attrs.frozen
class Running:
    """A pantry with four products of one category, and the gateway on it."""

    pantry: Server
    gateway: Gateway
    codes: list[str]

    @property
    def url(self) -> str:
        """The address of the function."""
        return f"{self.gateway.url}/function/pantry"

    async def book_on(self) -> None:
        """Book movements of the first product, one after the other, so that clients have events."""
        while True:
            await self.pantry.moved("in", 1, self.codes[0])
            await asyncio.sleep(0.05)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    directory = tmp_path_factory.mktemp("clients")
    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(pantry_system(directory))
        settings = {"GRAPHQL_PANTRY_DATABASE": f"sqlite:{system.one.database}", "GRAPHQL_NATS_URL": system.nats.url}
        served = await stack.enter_async_context(gateway(directory, **settings))

        async def is_ready() -> bool:
            return (await served.ask("GET", "/readyz")).status == 200

        await wait_until(is_ready, 30, every=0.05)
        category = await system.one.ask("POST", "/api/v1/categories", {"name": "food"})
        codes = []
        for number, name in enumerate(NAMES):
            first = f"{420000000000 + number}"
            codes.append(f"{first}{check_digit(first)}")
            await system.one.create(codes[-1], name=name, category_id=category.body["id"])
            await system.one.moved("in", 1.25, codes[-1])
        yield Running(system.one, served, codes)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(running: Running, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The findings of the clients in JavaScript, which run one after the other while movements are booked."""
    directory = tmp_path_factory.mktemp("node") / "clients"
    shutil.copytree(SCRIPTS, directory, ignore=shutil.ignore_patterns("node_modules", "__generated__"))
    (directory / "pantry.graphql").write_text(print_schema(SCHEMA), encoding="utf-8")
    await asyncio.to_thread(install, directory)
    await asyncio.to_thread(node, ["node_modules/relay-compiler/cli.js", "relay.config.json"], directory)
    booking = asyncio.create_task(running.book_on())
    try:
        text = await asyncio.to_thread(node, ["clients.js", running.url], directory)
    finally:
        booking.cancel()
        await asyncio.wait({booking})
    results: dict[str, Any] = json.loads(text)
    assert {name: result["failed"] for name, result in results.items() if "failed" in result} == {}
    return results


async def test_apollo_pages_keeps_objects_apart_and_sees_codes(running: Running, found: dict[str, Any]) -> None:
    result = found["apollo"]
    now, then = result.pop("ids")
    assert result == {"names": NAMES, "total": 4, "cached": "apples", "code": "BAD_USER_INPUT"}
    assert (now, then.partition("@")[0]) == (f"Product:{running.codes[0]}",) * 2
    assert now != then


async def test_urql_pages_and_follows_events_by_fetch(running: Running, found: dict[str, Any]) -> None:
    assert found["urql"] == {"names": NAMES, "code": "BAD_USER_INPUT", "change": f"Product:{running.codes[0]}"}


async def test_graphql_request_has_results_and_errors(found: dict[str, Any]) -> None:
    assert found["graphqlRequest"] == {"names": NAMES, "code": "BAD_USER_INPUT"}


async def test_graphql_sse_runs_several_operations(found: dict[str, Any]) -> None:
    assert found["sse"] == {"changes": 3, "again": 2, "total": 4, "code": "BAD_USER_INPUT"}


async def test_a_stream_resumes_after_an_event(found: dict[str, Any]) -> None:
    everything, rest = found["resumed"]["all"], found["resumed"]["rest"]
    assert rest == everything[1:3]


async def test_relay_compiles_and_pages_a_list_in_an_object(found: dict[str, Any]) -> None:
    assert found["relay"] == {"first": NAMES[:2], "all": NAMES}


async def test_types_are_generated(found: dict[str, Any]) -> None:
    assert found["generated"] == {"hasQuery": True, "hasDecimal": True}


async def test_gql_reads_the_schema_and_checks_queries_by_it(running: Running) -> None:
    transport = AIOHTTPTransport(url=running.url)
    async with Client(transport=transport, fetch_schema_from_transport=True) as session:
        query = gql("query($n: Int!) { products(first: $n) { totalCount nodes { name } } }")
        query.variable_values = {"n": 4}
        assert await session.execute(query) == {"products": {"totalCount": 4, "nodes": [{"name": name} for name in NAMES]}}
        with pytest.raises(TransportQueryError) as caught:
            await session.execute(gql("{ products(first: 1001) { totalCount } }"))
        assert caught.value.errors is not None
        assert caught.value.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
