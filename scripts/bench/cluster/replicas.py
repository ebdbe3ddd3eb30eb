"""Two `pantry serve` on one Postgres: a write through one, then a read of it through the other. Milliseconds.

    PYTHONPATH=.:scripts python scripts/bench/cluster/replicas.py [--rates 0 500] [--seconds 10] [--runs 3]

Each probe books a movement through one server, and reads the stock through the other with the sequence of the answer
(`min_seq`). The read is measured, in the same run as the same read without `min_seq`, which waits for nothing: the
difference is the wait. Once the writer is the server that applies events, once the other. The rate is of further movements,
through both servers, each due at its own moment.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

import attrs

from bench.helpers.measuring import show_machine
from pantry.domain.ean13 import check_digit
from projections.stores.postgres.server import PostgresServer
from tests.support.cluster.system import cluster_directory
from tests.support.pantry.system import MILK, Server, pantry_system

EVERY = 0.02
"""Seconds between two probes."""
PRODUCTS = 200
"""The products of the further movements: writers through two servers that want the same product wait for each other."""


@attrs.define
class Times:
    """Seconds of each probe's reads."""

    waiting: list[float] = attrs.field(factory=list)
    plain: list[float] = attrs.field(factory=list)


async def probe(writer: Server, reader: Server, seconds: float) -> Times:
    """Write through one, read through the other, for that many seconds."""
    times, end = Times(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        moved = await writer.move("in", 1, MILK)
        if moved.status != 201:  # busy: the rate is more than it can do
            await asyncio.sleep(EVERY)
            continue
        for query, into in ((f"?min_seq={moved.headers['Event-Sequence']}", times.waiting), ("", times.plain)):
            began = time.perf_counter()
            stock = await reader.get(f"/products/{MILK}/stock{query}")
            into.append(time.perf_counter() - began)
            assert not query or stock["current_stock"] >= moved.body["quantity"]
        await asyncio.sleep(EVERY)
    return times


def _code(number: int) -> str:
    first = f"{500000000000 + number}"
    return f"{first}{check_digit(first)}"


@asynccontextmanager
async def written(servers: list[Server], rate: float) -> AsyncIterator[list[float]]:
    """Movements through all servers at that rate until the block ends; seconds until each was acknowledged."""
    products = [_code(number) for number in range(PRODUCTS)]
    took: list[float] = []
    under_way: set[asyncio.Task[None]] = set()

    async def one(number: int, due: float) -> None:
        answer = await servers[number % len(servers)].move("in", 1, products[number % len(products)])
        if answer.status == 201:  # else the rate exceeds the capacity, and the reached rate is printed
            took.append(time.perf_counter() - due)

    async def all_of_them() -> None:
        start, number = time.perf_counter(), 0
        while True:
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(one(number, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            number += 1

    writing = asyncio.create_task(all_of_them() if rate else asyncio.Event().wait())
    try:
        yield took
    finally:
        writing.cancel()
        await asyncio.gather(writing, *under_way, return_exceptions=True)


async def main(rates: list[float], seconds: float, runs: int, directory: Path) -> None:
    """Measure each rate, with either as the writer, some times; print."""
    show_machine()
    async with PostgresServer(directory / "postgres") as postgres:
        await postgres.create("pantry")
        environment = {"PANTRY_DATABASE_URL": postgres.url("pantry"), "PANTRY_LOG_LEVEL": "warning"}
        async with pantry_system(directory, servers=2, **environment) as system:
            one, two = system.servers  # the one that was started first leads
            for code in (MILK, *(_code(number) for number in range(PRODUCTS))):
                await one.create(code)
            for rate in rates:
                for name, writer, reader in (("through the one that applies", one, two), ("through the other", two, one)):
                    rows = []
                    for _ in range(runs):
                        async with written(system.servers, rate) as took:
                            await probe(writer, reader, 1)
                            took.clear()
                            times = await probe(writer, reader, seconds)
                            achieved = len(took) / seconds
                        cuts = [quantiles(each, n=100) for each in (times.waiting, times.plain)]
                        rows.append([cuts[0][49] * 1e3, cuts[0][98] * 1e3, cuts[1][49] * 1e3, cuts[1][98] * 1e3, achieved])
                    waiting50, waiting99, plain50, plain99, reached = (median(column) for column in zip(*rows, strict=True))
                    print(
                        f"{rate:g} writes/s ({reached:.0f} reached), written {name}: "
                        f"read p50 {waiting50:.2f} p99 {waiting99:.2f} ms, "
                        f"without min_seq p50 {plain50:.2f} p99 {plain99:.2f} ms",
                        flush=True,
                    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, 500.0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with cluster_directory() as temporary:
        asyncio.run(main(given.rates, given.seconds, given.runs, temporary))
