"""Results under writes: each is compared with the fold of the log at the sequence that it names, and with itself.

    PYTHONPATH=.:scripts python scripts/bench/graphql/moments.py [--seconds 60] [--writes 200] [--queries 50] [--postgres]

A pantry on an embedded nats-server takes movements of 20 products at a steady rate. A gateway in another process answers
queries at a steady rate, each of which shows the same stocks in several places: of products alone, in a list, after the newest
movement, through the product of a movement. Each product has one writer, so that its acknowledged movements are all there are.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import itertools
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from statistics import quantiles
from typing import Any

import aiohttp
import attrs
import uvloop

from bench.graphql.hello import running
from bench.helpers.measuring import show_machine
from bench.helpers.pantry import code, prepare
from bench.helpers.pantry import pantry as pantry_server
from bench.readside.rebuild import postgres
from eventlog.embedded.nats import EmbeddedServer, free_port

PRODUCTS = 20
QUERY = """query($one: String!) {
    one: product(ean13: $one) { quantity movements(first: 1) { nodes { quantityAfter product { quantity } } } }
    products(first: 20) { nodes { ean13 quantity movements(first: 1) { nodes { quantityAfter } } } }
    movements(first: 1) { nodes { ean13 quantityAfter } }
}"""


@attrs.define
class Found:
    """Stocks as the writers know them, by product: sequences and the stock after each. Results, with their times."""

    sequences: dict[str, list[int]] = attrs.field(factory=dict)
    stocks: dict[str, list[float]] = attrs.field(factory=dict)
    results: list[tuple[str, Any]] = attrs.field(factory=list)
    seconds: list[float] = attrs.field(factory=list)
    failed: list[str] = attrs.field(factory=list)

    def stock(self, ean13: str, sequence: int) -> float:
        """The fold of a product's movements up to a sequence."""
        place = bisect.bisect_right(self.sequences[ean13], sequence)
        return self.stocks[ean13][place - 1] if place else 0.0

    def wrong(self) -> list[str]:
        """The claims of results that differ from the fold of the log."""
        found = []
        for ean13, result in self.results:
            data, sequence = result["data"], result["extensions"]["sequence"]
            claims = [(ean13, data["one"]["quantity"])]
            for node in data["one"]["movements"]["nodes"]:
                claims += [(ean13, node["quantityAfter"]), (ean13, node["product"]["quantity"])]
            for node in data["products"]["nodes"]:
                claims += [(node["ean13"], node["quantity"])]
                claims += [(node["ean13"], one["quantityAfter"]) for one in node["movements"]["nodes"]]
            claims += [(node["ean13"], node["quantityAfter"]) for node in data["movements"]["nodes"]]
            found += [
                f"{of} at {sequence}: {stock} instead of {self.stock(of, sequence)}"
                for of, stock in claims
                if float(stock) != self.stock(of, sequence)
            ]
        return found


async def at_rate(per_second: float, seconds: float, each: Callable[[int], Awaitable[None]]) -> None:
    """Begin calls at a steady rate, each at its own moment, and wait for all."""
    start = time.perf_counter()

    async def one(number: int) -> None:
        await asyncio.sleep(max(0.0, start + number / per_second - time.perf_counter()))
        await each(number)

    await asyncio.gather(*(one(number) for number in range(int(per_second * seconds))))


async def load(found: Found, service: str, function: str, given: argparse.Namespace) -> None:
    """Write and ask at the same time."""
    turns = {code(number): asyncio.Lock() for number in range(PRODUCTS)}
    choice = itertools.cycle(turns)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:

        async def write(_: int) -> None:
            ean13 = next(choice)
            body = {"product_ean13": ean13, "type": "in", "quantity": 1}
            async with turns[ean13], http.post(f"{service}/api/v1/movements", json=body) as answer:
                made = await answer.json()
                if answer.status != 201:
                    found.failed.append(f"write: {answer.status}")
                    return
                found.sequences.setdefault(ean13, []).append(int(answer.headers["Event-Sequence"]))
                found.stocks.setdefault(ean13, []).append(float(made["stock_after"]))

        async def ask(number: int) -> None:
            ean13, began = code(number % PRODUCTS), time.perf_counter()
            async with http.post(function, json={"query": QUERY, "variables": {"one": ean13}}) as answer:
                result = await answer.json()
            found.seconds.append(time.perf_counter() - began)
            if "errors" in result:
                found.failed.append(str(result["errors"]))
            else:
                found.results.append((ean13, result))

        await at_rate(PRODUCTS, 1, write)  # each product has a stock
        await asyncio.gather(at_rate(given.writes, given.seconds, write), at_rate(given.queries, given.seconds, ask))


async def main(given: argparse.Namespace, directory: Path) -> int:
    """Run, compare, print."""
    show_machine()
    place = f"sqlite:{directory / 'pantry.db'}"
    async with (
        postgres() if given.postgres else nullcontext(place) as database,
        EmbeddedServer(directory / "nats") as nats,
        pantry_server(nats, directory, database=database) as server,
    ):
        await prepare(server, PRODUCTS)
        port, found = free_port(), Found()
        with running(
            [sys.executable, "-m", "graphql_fn", "serve"], port, GRAPHQL_PANTRY_DATABASE=database, GRAPHQL_QUERY_TIMEOUT="30s"
        ):
            await load(found, f"http://127.0.0.1:{server.port}", f"http://127.0.0.1:{port}/function/pantry", given)
    wrong, writes = found.wrong(), sum(map(len, found.sequences.values()))
    moments = len({result["extensions"]["sequence"] for _, result in found.results})
    times = quantiles(found.seconds, n=100)
    print(f"{'Postgres' if given.postgres else 'SQLite'}, {given.seconds:g} s: {writes:,} writes, {len(found.results):,} results")
    print(f"of {moments:,} moments; p50 {times[49] * 1e3:.1f} ms, p99 {times[98] * 1e3:.1f} ms; {len(found.failed)} failed")
    print(f"{len(wrong)} claims differ from the fold of the log", *wrong[:10], *found.failed[:10], sep="\n")
    return 1 if wrong or found.failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--writes", type=float, default=200)
    parser.add_argument("--queries", type=float, default=50)
    parser.add_argument("--postgres", action="store_true", help="the tables are in Postgres")
    with tempfile.TemporaryDirectory(prefix="moments-") as temporary:
        sys.exit(uvloop.run(main(parser.parse_args(), Path(temporary))))
