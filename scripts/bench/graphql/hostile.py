"""`{ hello }` while a gateway is asked hostile queries of 20 kinds: the waits, the answers by kind, and the memory.

    PYTHONPATH=.:scripts python scripts/bench/graphql/hostile.py [--seconds 30] [--attackers 1]

The gateway is one process on a pantry with 1,000 products in SQLite. Each attacker sends the kinds one after the other, time
after time, while one client asks for `{ hello }` every 5 ms. The waits of this client are measured in the same way without
attackers, before and after. The processor time of a kind is the server's, measured alone, one request at a time. Memory is the
server's resident memory after each tenth of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

import structlog
import uvloop

from bench.graphql.hello import HELLO, Server, connect, request, running
from bench.helpers.measuring import show_machine
from eventlog.embedded.nats import free_port
from tests.support.pantry.stocked import stocked
from tests.support.web.hostile_queries import KINDS, PATH, Hostile

ALONE = 5
"""Seconds of the measurements without attackers."""
TIMES = 10
"""Requests of each kind whose processor time is measured."""


def spread(seconds: list[float]) -> str:
    """The distribution of times."""
    times = [one * 1e3 for one in seconds]
    return (
        f"p50 {median(times):.2f} ms, p99 {quantiles(times, n=100)[98]:.2f} ms, longest {max(times):.2f} ms, {len(times)} times"
    )


async def send(server: Server, kind: Hostile) -> tuple[int, float]:
    """The status of the answer to a kind on a new connection, and the seconds until it."""
    client, began = await connect(server.port), time.perf_counter()
    status = await client.ask(request(kind.body, kind.content_type, PATH))
    took = time.perf_counter() - began
    client.transport.close()
    return status, took


@asynccontextmanager
async def hello(server: Server, waits: list[float]) -> AsyncIterator[None]:
    """Ask for `{ hello }` every 5 ms for the time of the block."""

    async def ask() -> None:
        client = await connect(server.port)
        while True:
            began = time.perf_counter()
            assert await client.ask(request(HELLO)) == 200
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)

    task = asyncio.create_task(ask())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def costs(server: Server) -> dict[str, tuple[int, float]]:
    """The status and the processor seconds of each kind, one request at a time."""
    found = {}
    for name, kind in KINDS.items():
        await send(server, kind)
        before = server.cpu
        statuses = {(await send(server, kind))[0] for _ in range(TIMES)}
        found[name] = statuses.pop(), (server.cpu - before) / TIMES
    return found


async def main(given: argparse.Namespace, directory: Path) -> int:
    """Attack, print. Returns an exit code: 1 if the memory rose by more than a tenth in the second half."""
    show_machine()
    await stocked(directory / "pantry.db", products=1000, movements=4, categories=25)
    settings = {"GRAPHQL_PANTRY_DATABASE": f"sqlite:{directory / 'pantry.db'}"}
    with running([sys.executable, "-m", "graphql_fn", "serve"], free_port(), **settings) as server:
        for name, (status, cpu) in (await costs(server)).items():
            print(f"{name:34} {status}  {cpu * 1e3:7.1f} ms of processor time")
        waits: dict[str, list[float]] = {"alone": [], "among hostile queries": [], "alone again": []}
        memory = [server.process.memory_info().rss / 1e6]
        sent = 0

        async def attack() -> None:
            nonlocal sent
            while True:
                for kind in KINDS.values():
                    await send(server, kind)
                    sent += 1

        async with hello(server, waits["alone"]):
            await asyncio.sleep(ALONE)
        attackers = [asyncio.create_task(attack()) for _ in range(given.attackers)]
        async with hello(server, waits["among hostile queries"]):
            for _ in range(10):
                await asyncio.wait(attackers, timeout=given.seconds / 10, return_when=asyncio.FIRST_EXCEPTION)
                memory.append(server.process.memory_info().rss / 1e6)
        for attacker in attackers:
            attacker.cancel()
        await asyncio.wait(attackers)
        async with hello(server, waits["alone again"]):
            await asyncio.sleep(ALONE)
    for name, seconds in waits.items():
        print(f"{f'{{ hello }} {name}':34} {spread(seconds)}")
    print(f"{sent:,} hostile queries; memory in MB: {', '.join(f'{one:.0f}' for one in memory)}")
    return int(memory[-1] > 1.1 * memory[5])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--attackers", type=int, default=1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        sys.exit(uvloop.run(main(parser.parse_args(), Path(temporary))))
