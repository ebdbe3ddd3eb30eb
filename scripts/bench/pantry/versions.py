"""Two versions of the pantry under the same load in turn: movements booked and products read, by number of connections.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/pantry/versions.py CHECKOUT [--slices 5] [--seconds 1.5] [--products 2000]
        [--connections 1,16,64] [--mixed]

With `--mixed`, movements and reads are at the same time, each over the given number of connections. CHECKOUT is the root of
another version, set up by its `scripts/test`. Each version has its own nats-server. Both run all the time, and the load changes
from one to the other after each slice. So slow minutes of the machine meet both.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from bench.helpers.http import Load, show
from bench.helpers.measuring import load_options, show_machine
from bench.helpers.pantry import Server, movements, pantry, prepare, reads
from eventlog.embedded.nats import EmbeddedServer

ROOT = Path(__file__).resolve().parents[3]

Work = Callable[[Server], Awaitable[Load]]


async def movements_with_reads(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """The movements of a slice with reads, both over the given number of connections."""
    booked, _ = await _both(server, products, connections, seconds)
    return booked


async def reads_with_movements(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """The reads of a slice with movements, both over the given number of connections."""
    _, read = await _both(server, products, connections, seconds)
    return read


async def _both(server: Server, products: int, connections: int, seconds: float) -> tuple[Load, Load]:
    return await asyncio.gather(
        movements(server, products=products, connections=connections, seconds=seconds),
        reads(server, products=products, connections=connections, seconds=seconds),
    )


ALONE = (("movements", movements), ("products read", reads))
MIXED = (("movements with reads", movements_with_reads), ("products read with movements", reads_with_movements))


async def in_turn(servers: Sequence[Server], work: Work, slices: int) -> Sequence[Sequence[Load]]:
    """The loads of each server. Every second slice has the other order, and the first slice of each server does not count."""
    found: list[list[Load]] = [[] for _ in servers]
    for number in range(slices + 1):
        for index in range(len(servers))[:: 1 if number % 2 else -1]:
            found[index].append(await work(servers[index]))
    return [loads[1:] for loads in found]


def factor(loads: Sequence[Load], before: Sequence[Load]) -> float:
    """The median of the quotients of neighbouring slices."""
    return statistics.median(one.rate / other.rate for one, other in zip(loads, before, strict=True))


async def main() -> None:
    """Measure and print."""
    parser = load_options(__doc__, seconds=1.5)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--mixed", action="store_true")
    given = parser.parse_args()
    show_machine()
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
            for what, under in MIXED if given.mixed else ALONE:
                work = partial(under, products=given.products, connections=connections, seconds=given.seconds)
                other, now = await in_turn(servers, work, given.slices)
                show(f"{what}, {connections} connections, other", other)
                show(f"{what}, {connections} connections, now", now, f"  factor {factor(now, other):.2f}")


if __name__ == "__main__":
    uvloop.run(main())
