"""The pantry over HTTP: movements, reads, the stock report, an import, each durable and checked in the same run.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/pantry/movements.py [--runs 3] [--seconds 4] [--products 10000]
        [--servers 2]

The clients are in this process, the server is a second process, on one embedded nats-server that syncs every write. Then
several servers, each with its own tables, share the connections. Bare aiohttp with one durable publish per request is measured
in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

import attrs
import psutil
import uvloop
from aiohttp import web
from nats import connect

from bench.helpers.measuring import show_machine
from eventlog.embedded.nats import EmbeddedServer
from pantry.domain.ean13 import check_digit

IMPORTED = 100_000
"""Movements of the import."""


@attrs.define
class Load:
    """The result of one load: latencies in seconds, and how many answers had which status."""

    seconds: float
    latencies: list[float] = attrs.field(factory=list)
    statuses: dict[int, int] = attrs.field(factory=dict)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        return sorted(self.latencies)[int(part * (len(self.latencies) - 1))] * 1000


class _Client(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, request: Callable[[], bytes], load: Load, until: float) -> None:
        self._request = request
        self._load = load
        self._until = until
        self._began = 0.0
        self._buffer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        now = time.perf_counter()
        self._load.latencies.append(now - self._began)
        status = int(head[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._buffer = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None) if exc is None else self.done.set_exception(exc)


async def load(*ports: int, request: Callable[[], bytes], connections: int, seconds: float) -> Load:
    """Ask over that many connections for that many seconds, one port after the other."""
    result = Load(seconds)
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    clients = [
        (await loop.create_connection(lambda: _Client(request, result, until), "127.0.0.1", port))[1]
        for port in itertools.islice(itertools.cycle(ports), connections)
    ]
    await asyncio.gather(*(client.done for client in clients))
    result.seconds = time.perf_counter() - began
    return result


def post(path: str, body: bytes, media: str = "application/json", key: str | None = None) -> bytes:
    """A POST as it goes over the wire, with an idempotency key if there is one."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n"
    if key is not None:
        head += f"Idempotency-Key: {key}\r\n"
    return head.encode() + b"\r\n" + body


def get(path: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


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
        return (await self._answer(raw))[1]

    async def reached(self) -> int:
        """The sequence of the log up to which it shows what is stored."""
        head, _ = await self._answer(get("/api/v1/categories"))
        return int(head.lower().split(b"event-sequence:")[1].split(b"\r", 1)[0])

    async def _answer(self, raw: bytes) -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(raw)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r", 1)[0])
        body = await reader.readexactly(length)
        writer.close()
        assert head.startswith(b"HTTP/1.1 20"), head + body
        return head, body

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
    python, path = (sys.executable, {}) if checkout is None else (checkout / ".venv/bin/python", {"PYTHONPATH": str(checkout)})
    read, write = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", "pantry", "serve", "--host", "127.0.0.1", "--port", "0", "--ready-fd", str(write)),
        env={
            **os.environ,
            **path,
            "PANTRY_NATS_URL": nats.url,
            "PANTRY_DATABASE_URL": database or f"sqlite:{directory / 'pantry.db'}",
            "PANTRY_LOG_LEVEL": "warning",
        },
        cwd=None if checkout is None else directory,
        pass_fds=(write,),
        stdout=asyncio.subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as ready:
        url = (await asyncio.to_thread(ready.read)).strip()
    try:
        yield Server(int(url.rpartition(":")[2]), psutil.Process(process.pid))
    finally:
        process.terminate()
        await process.wait()


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
    reached = max(await asyncio.gather(*(server.reached() for server in servers)))
    report = json.loads(await servers[0].ask(get(f"/api/v1/reports/stock?min_seq={reached}")))
    return float(sum(item["product"]["current_stock"] for item in report["items"]))


async def import_many(server: Server, products: int) -> float:
    """Movements per second of an import."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["product_ean13", "type", "quantity"])
    writer.writerows([code(number % products), "in", "1.25"] for number in range(IMPORTED))
    before = await booked(server)
    began = time.perf_counter()
    answer = json.loads(await server.ask(post("/api/v1/movements:batch", text.getvalue().encode(), "text/csv")))
    seconds = time.perf_counter() - began
    assert answer["accepted"] == IMPORTED, answer
    assert round((await booked(server) - before) / 1.25) == IMPORTED
    return IMPORTED / seconds


async def bare(nats: EmbeddedServer, *, connections: int, seconds: float) -> Load:
    """Bare aiohttp that publishes each request durably, one by one, and does nothing else."""
    client = await connect(nats.url)
    async with client:
        js = client.jetstream()
        await js.add_stream(name="BARE", subjects=["bare"])

        async def handle(request: web.Request) -> web.Response:
            await js.publish("bare", await request.read())
            return web.json_response({})

        app = web.Application()
        app.router.add_post("/", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        body = b'{"product_ean13": "4006381333931", "type": "in", "quantity": 1.25}'
        try:
            return await load(port, request=lambda: post("/", body), connections=connections, seconds=seconds)
        finally:
            await runner.cleanup()
            await js.delete_stream("BARE")


async def share(nats: EmbeddedServer, server: Server, directory: Path, options: argparse.Namespace) -> None:
    """The movements with 64 connections once more, over several servers."""
    async with AsyncExitStack() as stack:
        servers = [server]
        for number in range(1, options.servers):
            own = directory / f"server-{number}"
            own.mkdir()
            servers.append(await stack.enter_async_context(pantry(nats, own)))
            while await servers[-1].reached() < await server.reached():  # noqa: ASYNC110 - a server sets no event
                await asyncio.sleep(0.1)
        for products in (1, options.products):
            runs = [
                await movements(*servers, products=products, connections=64, seconds=options.seconds) for _ in range(options.runs)
            ]
            show(f"movements, 64 over {len(servers)} servers, {products} products", runs)


def show(name: str, runs: Sequence[Load], note: str = "") -> None:
    """Print the median, lowest and highest rate, the medians of the percentiles, and a note."""
    rates = [run.rate for run in runs]
    p50, p99 = (statistics.median(run.percentile(part) for run in runs) for part in (0.5, 0.99))
    span = f"({min(rates):,.0f} to {max(rates):,.0f})"
    print(f"{name:48} {statistics.median(rates):9,.0f}/s {span:20} p50 {p50:.2f} ms  p99 {p99:.2f} ms{note}", flush=True)


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--products", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=2, help="number of processes that share the connections at the end")
    parser.add_argument("--movements-only", action="store_true", help="end after the movements on one server")
    options = parser.parse_args()
    show_machine()
    with tempfile.TemporaryDirectory(prefix="bench-pantry-") as folder:
        directory = Path(folder)
        async with EmbeddedServer(directory / "nats") as nats, pantry(nats, directory) as server:
            await prepare(server, options.products)
            for connections in (1, 16, 64):
                for products in (1, options.products):
                    runs = [
                        await movements(server, products=products, connections=connections, seconds=options.seconds)
                        for _ in range(options.runs)
                    ]
                    show(f"movements, {connections} connections, {products} products", runs)
            for connections in (1, 16, 64):
                for products in (1, options.products):
                    runs = [
                        await movements(server, products=products, connections=connections, seconds=options.seconds, keyed=True)
                        for _ in range(options.runs)
                    ]
                    show(f"with keys, {connections} connections, {products} products", runs)
            if options.movements_only:
                return
            runs = [
                await reads(server, products=options.products, connections=64, seconds=options.seconds)
                for _ in range(options.runs)
            ]
            show("products read, 64 connections", runs)
            reports = [
                await load(server.port, request=lambda: get("/api/v1/reports/stock"), connections=1, seconds=2) for _ in range(3)
            ]
            show(f"stock report, {options.products} products", reports)
            imports = [await import_many(server, options.products) for _ in range(options.runs)]
            print(f"{'import of ' + format(IMPORTED, ',') + ' movements (CSV)':48} {statistics.median(imports):9,.0f}/s")
            print(f"memory of the server {server.memory():.0f} MB")
            await share(nats, server, directory, options)
        async with EmbeddedServer(directory / "bare") as nats:
            runs = [await bare(nats, connections=64, seconds=options.seconds) for _ in range(options.runs)]
            show("bare aiohttp, one publish per request, 64", runs)


if __name__ == "__main__":
    uvloop.run(main())
