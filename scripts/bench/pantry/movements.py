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
import json
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path

import uvloop
from aiohttp import web
from nats import connect

from bench.helpers import Load, Server, booked, code, get, load, movements, pantry, post, prepare, reads, show, show_machine
from eventlog.embedded.nats import EmbeddedServer

IMPORTED = 100_000
"""Movements of the import."""


async def import_many(server: Server, products: int) -> float:
    """Movements per second of an import."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["product_ean13", "type", "quantity"])
    writer.writerows([code(number % products), "in", "1.25"] for number in range(IMPORTED))
    before = await booked(server)
    began = time.perf_counter()
    answer = json.loads(await server.ask("/api/v1/movements:batch", text.getvalue().encode(), "text/csv"))
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
            for keyed, connections, products in product((False, True), (1, 16, 64), (1, options.products)):
                runs = [
                    await movements(server, products=products, connections=connections, seconds=options.seconds, keyed=keyed)
                    for _ in range(options.runs)
                ]
                show(f"{'with keys' if keyed else 'movements'}, {connections} connections, {products} products", runs)
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
