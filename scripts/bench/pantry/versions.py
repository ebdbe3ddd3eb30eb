"""Two versions of the pantry under the same load in turn: movements booked and products read, by number of connections.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/pantry/versions.py CHECKOUT [--slices 5] [--seconds 1.5] [--products 2000]
        [--connections 1,16,64]

CHECKOUT is the root of another version, set up by its `scripts/test`. Each version has its own nats-server. Both run all the
time, and the load changes from one to the other after each slice. So slow minutes of the machine meet both.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from bench.pantry.movements import Load, Server, code, get, load, movements, pantry, prepare
from eventlog.embedded.nats import EmbeddedServer

ROOT = Path(__file__).resolve().parents[3]

Work = Callable[[Server], Awaitable[Load]]


async def book(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """Book into random products."""
    return await movements(server, products=products, connections=connections, seconds=seconds)


async def read(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """Read random products."""
    requests = [get(f"/api/v1/products/{code(number)}") for number in range(products)]
    return await load(server.port, request=lambda: random.choice(requests), connections=connections, seconds=seconds)  # noqa: S311


async def in_turn(servers: Sequence[Server], work: Work, slices: int) -> Sequence[Sequence[Load]]:
    """The loads of each server. Every second slice has the other order, and the first slice of each server does not count."""
    found: list[list[Load]] = [[] for _ in servers]
    for number in range(slices + 1):
        for index in range(len(servers))[:: 1 if number % 2 else -1]:
            found[index].append(await work(servers[index]))
    return [loads[1:] for loads in found]


def show(name: str, loads: Sequence[Load], before: Sequence[Load]) -> None:
    """Print the rate, the percentiles and the median of the factors of neighbouring slices."""
    rates = [one.rate for one in loads]
    p50, p99 = (statistics.median(one.percentile(part) for one in loads) for part in (0.5, 0.99))
    factor = statistics.median(one.rate / other.rate for one, other in zip(loads, before, strict=True))
    span = f"({min(rates):,.0f} to {max(rates):,.0f})"
    print(
        f"{name:32}{statistics.median(rates):>9,.0f}/s {span:20} p50 {p50:6.2f} ms  p99 {p99:6.2f} ms  factor {factor:.2f}",
        flush=True,
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--connections", default="1,2,4,8,16,64")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-versions-")))
        servers = []
        for name, checkout in (("other", given.checkout.absolute()), ("now", ROOT)):
            own = directory / name
            own.mkdir()
            nats = await stack.enter_async_context(EmbeddedServer(own / "nats"))
            servers.append(await stack.enter_async_context(pantry(nats, own, checkout=checkout)))
            await prepare(servers[-1], given.products)
        for connections in map(int, given.connections.split(",")):
            for what in (book, read):
                work = partial(what, products=given.products, connections=connections, seconds=given.seconds)
                other, now = await in_turn(servers, work, given.slices)
                show(f"{what.__name__}, {connections} connections, other", other, other)
                show(f"{what.__name__}, {connections} connections, now", now, other)


if __name__ == "__main__":
    uvloop.run(main())
