"""A nested query over 1,000 products through the gateway and three peers, and smaller ones of the same shape.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/graphql/nested.py [--runs 5] [--products 1000] [--movements 5]
        [--peer PYTHON]

A pantry on an embedded nats-server is filled with products and movements. The gateway reads its database, as a separate
process. The query asks for each product's category, its stock at a time, its last two movements and the product of each of these.
The gateway counts its statements. Strawberry, Ariadne and GraphQL Yoga read the same tables with one statement for each level,
by data loaders, and their results have to be equal. The servers take turns. In comparison: the same by the pantry's API, with
one request for the list and one for the movements of each product, eight at a time. The processor time is the server's, by query.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import aiohttp
import attrs
import uvloop

from bench.graphql.hello import PEERS, running
from bench.graphql.hello import Server as Gateway
from bench.helpers.http import post
from bench.helpers.measuring import show_machine
from bench.helpers.pantry import Server, code, pantry, prepare
from bench.helpers.peer_node import NODE
from bench.helpers.peer_node import installed as yoga_installed
from bench.helpers.peer_python import installed
from eventlog.embedded.nats import EmbeddedServer, free_port

QUERY = """query($first: Int!) { products(first: $first) { nodes { name currentStock category { name }
    quantityAt(time: "2026-01-01T00:00:00Z") movements(first: 2) { nodes { kind amount createdAt product { name } } } } } }"""
AT_A_TIME = 8


@attrs.frozen
class Asked:
    """The cost of one query: seconds, processor seconds of the server, statements (0: not counted), the products it returned."""

    seconds: float
    cpu: float
    statements: int
    products: Sequence[object]


async def book(server: Server, products: int, movements: int) -> None:
    """Movements of each product, by an import."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["product_ean13", "type", "quantity"])
    writer.writerows([code(number % products), "in", "1.25"] for number in range(products * movements))
    answer = json.loads(await server.ask(post("/api/v1/movements:batch", text.getvalue().encode(), "text/csv")))
    assert answer["accepted"] == products * movements, answer


async def statements(http: aiohttp.ClientSession, url: str) -> int:
    """The statements of the gateway so far."""
    async with http.get(f"{url}/metrics") as answer:
        if answer.status != 200:
            return 0
        found = re.search(r'^graphql_statements_total\{function="pantry"\} (\S+)$', await answer.text(), re.MULTILINE)
    return int(float(found[1])) if found else 0


async def ask(http: aiohttp.ClientSession, gateway: Gateway, first: int) -> Asked:
    """Ask the query for the first products."""
    url = f"http://127.0.0.1:{gateway.port}"
    before, cpu, began = await statements(http, url), gateway.cpu, time.perf_counter()
    async with http.post(f"{url}/function/pantry", json={"query": QUERY, "variables": {"first": first}}) as answer:
        result = await answer.json()
    seconds, used = time.perf_counter() - began, gateway.cpu - cpu
    assert "errors" not in result, result["errors"][:3]
    nodes = result["data"]["products"]["nodes"]
    assert all(len(node["movements"]["nodes"]) == 2 for node in nodes)
    return Asked(seconds, used, await statements(http, url) - before, nodes)


async def ask_one_by_one(http: aiohttp.ClientSession, server: Server, first: int) -> Asked:
    """The list by the pantry's API, then the movements of each product in it."""
    url = f"http://127.0.0.1:{server.port}/api/v1"
    cpu, began = sum(server.process.cpu_times()[:2]), time.perf_counter()
    async with http.get(f"{url}/products") as answer:
        products = (await answer.json())[:first]
    turns = asyncio.Semaphore(AT_A_TIME)

    async def movements(ean13: str) -> None:
        async with turns, http.get(f"{url}/products/{ean13}/movements?limit=2") as answer:
            assert len(await answer.json()) == 2

    await asyncio.gather(*(movements(product["ean13"]) for product in products))
    return Asked(time.perf_counter() - began, sum(server.process.cpu_times()[:2]) - cpu, 0, products)


def report(name: str, asked: list[Asked]) -> None:
    """One line: medians, with the lowest and the highest time."""
    seconds = sorted(one.seconds * 1000 for one in asked)
    line = f"{name:34} {median(seconds):8,.1f} ms ({seconds[0]:,.1f} to {seconds[-1]:,.1f})"
    counted = {one.statements for one in asked}
    told = f"  {min(counted)} statements" if counted == {min(counted)} and min(counted) else ""
    print(f"{line}  {median(one.cpu for one in asked) * 1000:7,.1f} ms of processor time{told}")


async def commands(given: argparse.Namespace, directory: Path, database: Path) -> Mapping[str, Sequence[str]]:
    """The commands of the servers but for their ports, which replace `PORT`."""
    python = str(given.peer or await asyncio.to_thread(installed, directory))
    yoga = await asyncio.to_thread(yoga_installed, directory / "yoga", PEERS / "yoga.mjs")
    return {
        "graphql-fn": [sys.executable, "-m", "graphql_fn", "serve"],
        "Strawberry (aiohttp)": [python, str(PEERS / "strawberry_nested.py"), "PORT", str(database)],
        "Ariadne (uvicorn)": [python, str(PEERS / "ariadne_nested.py"), "PORT", str(database)],
        "Yoga (node:http)": [str(NODE), str(yoga), "PORT", "", str(database), str(PEERS / "pantry_tables.json")],
    }


@contextmanager
def served(command: Sequence[str], database: Path) -> Iterator[Gateway]:
    """A server with this command."""
    port = free_port()
    settings = {"GRAPHQL_PANTRY_DATABASE": f"sqlite:{database}", "GRAPHQL_QUERY_TIMEOUT": "1m"}
    with running([str(port) if word == "PORT" else word for word in command], port, **settings) as server:
        yield server


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Fill, ask, print."""
    show_machine()
    database = directory / "pantry.db"
    servers = await commands(given, directory, database)
    sizes = sorted({1, given.products // 10, given.products})
    asked: dict[tuple[str, int], list[Asked]] = {}
    async with EmbeddedServer(directory / "nats") as nats, pantry(nats, directory) as server, aiohttp.ClientSession() as http:
        await prepare(server, given.products)
        await book(server, given.products, given.movements)
        for _ in range(given.runs):
            for name, command in servers.items():
                with served(command, database) as each:
                    for first in sizes:
                        await ask(http, each, first)  # it is warm then
                        asked.setdefault((name, first), []).append(await ask(http, each, first))
        alone = [await ask_one_by_one(http, server, given.products) for _ in range(given.runs)]
    for (name, first), found in asked.items():
        assert all(one.products == asked["graphql-fn", first][0].products for one in found), f"{name} has another result"
        report(f"{name}, {first:,} products", found)
    report(f"by the API, {len(alone[0].products) + 1:,} requests", alone)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--products", type=int, default=1000)
    parser.add_argument("--movements", type=int, default=5)
    parser.add_argument("--peer", help="a Python that has the extra `bench`")
    with tempfile.TemporaryDirectory(prefix="nested-") as temporary:
        uvloop.run(main(parser.parse_args(), Path(temporary)))
