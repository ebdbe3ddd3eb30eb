"""The pantry under load: its server as a process, its products, and movements and reads that are checked."""

from __future__ import annotations

import itertools
import json
import random
import sys
from asyncio import gather
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import attrs
import psutil

from bench.helpers.http import Answer, Client, Load, get, load, post
from bench.helpers.processes import started
from eventlog.embedded.nats import EmbeddedServer
from pantry.domain.ean13 import check_digit


def code(number: int) -> str:
    """The EAN-13 of a product of the benchmark."""
    first = f"{400000000000 + number}"
    return f"{first}{check_digit(first)}"


@attrs.frozen
class Server:
    """The server under load."""

    port: int
    process: psutil.Process

    async def ask(self, raw: bytes) -> bytes:
        """The body of one answer."""
        return (await self._answer(raw)).body

    async def reached(self) -> int:
        """The sequence of the log up to which it shows what is stored."""
        return (await self._answer(get("/api/v1/categories"))).field(b"event-sequence")

    async def _answer(self, raw: bytes) -> Answer:
        client = Client(self.port)
        try:
            answer = await client.ask(raw)
        finally:
            client.close()
        assert answer.status in range(200, 210), answer
        return answer

    def memory(self) -> float:
        """Resident memory in megabytes."""
        return self.process.memory_info().rss / 1e6


@asynccontextmanager
async def pantry(
    nats: EmbeddedServer, directory: Path, *, database: str | None = None, checkout: Path | None = None
) -> AsyncIterator[Server]:
    """One `pantry serve`. `database` is the address of its tables (None: a file in the directory).

    `checkout` is the root of another version, with its own environment.
    """
    settings = {
        "PANTRY_NATS_URL": nats.url,
        "PANTRY_DATABASE_URL": database or f"sqlite:{directory / 'pantry.db'}",
        "PANTRY_LOG_LEVEL": "warning",
    }
    python: str | Path = sys.executable
    if checkout is not None:
        python, settings = checkout / ".venv/bin/python", {**settings, "PYTHONPATH": str(checkout)}
    async with started("pantry", settings, python=python, directory=checkout and directory) as one:
        yield Server(one.port, one.process)


async def prepare(server: Server, products: int) -> None:
    """Make the products."""
    missing = deque(range(products))

    def request() -> bytes:
        number = missing.popleft() if missing else 0
        return post(f"/api/v1/products/{code(number)}", b'{"name": "product %d", "unit": "kg", "min_stock": 1.5}' % number)

    while missing:
        made = await load(server.port, request=request, connections=64, seconds=0.5)
        assert set(made.statuses) <= {201, 409}, made.statuses


async def movements(*servers: Server, products: int, connections: int, seconds: float, keyed: bool = False) -> Load:
    """Book into random products, over one server or several, and see that the stock is what was booked.

    `keyed`: each request has its own idempotency key.
    """
    before = await booked(*servers)
    bodies = [b'{"product_ean13": "%s", "type": "in", "quantity": 1.25}' % code(number).encode() for number in range(products)]
    requests = [post("/api/v1/movements", body) for body in bodies]
    keys = map(f"{uuid4().hex}-{{}}".format, itertools.count())

    def request() -> bytes:
        if not keyed:
            return random.choice(requests)  # noqa: S311 - a load, not a secret
        return post("/api/v1/movements", random.choice(bodies), key=next(keys))  # noqa: S311 - as above

    ports = [server.port for server in servers]
    result = await load(*ports, request=request, connections=connections, seconds=seconds)
    assert set(result.statuses) == {201}, result.statuses
    after = await booked(*servers)
    assert round((after - before) / 1.25) == len(result.latencies), (before, after, len(result.latencies))
    return result


async def reads(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """Read random products."""
    requests = [get(f"/api/v1/products/{code(number)}") for number in range(products)]
    return await load(server.port, request=lambda: random.choice(requests), connections=connections, seconds=seconds)  # noqa: S311


async def booked(*servers: Server) -> float:
    """The stock of all products together, as the first server shows it when it has what every one of them has."""
    reached = max(await gather(*(server.reached() for server in servers)))
    report = json.loads(await servers[0].ask(get(f"/api/v1/reports/stock?min_seq={reached}")))
    return float(sum(item["product"]["current_stock"] for item in report["items"]))
