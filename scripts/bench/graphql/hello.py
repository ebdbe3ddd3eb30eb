"""`{ hello }` over HTTP: requests per second, with bare aiohttp and the same bytes, Strawberry and Yoga in the same run.

PYTHONPATH=.:scripts python scripts/bench/graphql/hello.py [--seconds 3] [--runs 5] [--connections 32] [--no-peers]

Each server is one process, in Python on uvloop, measured in turns by keep-alive connections that send the next request
when the last is answered; requests are JSON bodies, logs are off. Strawberry has its own caches of documents on. The processor
time of a server by request depends less on other programs of the machine. The peers are installed into temporary folders;
`--no-peers` leaves them out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import attrs
import psutil
import uvloop
from aiohttp import web

from bench.helpers import NODE, PEERS, ROOT, installed, load, post, show_machine, until_open, yoga_installed
from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import free_port
from graphql_fn.core.hello import GREETING

HELLO = json.dumps({"query": "{ hello }"}).encode()
ANSWER = json.dumps({"data": {"hello": GREETING}}, separators=(",", ":")).encode()


# --- servers


@attrs.frozen
class Server:
    """A server that runs."""

    port: int
    process: psutil.Process

    @property
    def cpu(self) -> float:
        """The processor seconds that it has used."""
        return sum(self.process.cpu_times()[:2])


@contextmanager
def running(command: Sequence[str], port: int, **added: str) -> Iterator[Server]:
    """A server with this command, which has this port; `added` is for its environment."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GRAPHQL_")},
        "GRAPHQL_PORT": str(port),
        "GRAPHQL_LOG_LEVEL": "warning",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}",
        **added,
    }
    with subprocess.Popen(attached_command(command), env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            until_open(port)
            yield Server(port, psutil.Process(process.pid))
        finally:
            process.terminate()


def bare(port: int) -> None:
    """Serve the bytes of the answer with nothing but aiohttp."""

    async def answer(given: web.Request) -> web.Response:
        await given.read()
        return web.Response(body=ANSWER, content_type="application/json")

    uvloop.install()
    app = web.Application()
    app.router.add_post("/function/graphql", answer)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


# --- load


@attrs.frozen
class Rate:
    """Requests per second, and processor microseconds of the server for each."""

    per_second: float
    cpu: float


async def rate(server: Server, connections: int, seconds: float) -> Rate:
    """Ask as fast as answers come."""
    message = post("/function/graphql", HELLO)
    await load(server.port, request=lambda: message, connections=connections, seconds=0.3)
    cpu = server.cpu
    loaded = await load(server.port, request=lambda: message, connections=connections, seconds=seconds)
    assert loaded.statuses.keys() == {200}, loaded.statuses
    return Rate(loaded.rate, (server.cpu - cpu) / len(loaded.latencies) * 1e6)


# --- the run


def report(name: str, rates: list[Rate], ours: list[Rate]) -> None:
    """One line for a server."""
    seen = sorted(rate.per_second for rate in rates)
    line = f"{name:28} {median(seen):7,.0f}/s ({seen[0]:,.0f} to {seen[-1]:,.0f})"
    ratio = median(mine.per_second / other.per_second for mine, other in zip(ours, rates, strict=True))
    print(f"{line}  {median(rate.cpu for rate in rates):5.0f} us of processor time each  ours is {ratio:.2f} times it")


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Measure in turns, print."""
    show_machine("aiohttp", "graphql-core")
    ports = [free_port() for _ in range(4)]
    commands = {
        "graphql-fn": [sys.executable, "-m", "graphql_fn", "serve"],
        "bare aiohttp": [sys.executable, __file__, "--bare", str(ports[1])],
    }
    if not given.no_peers:
        python = await asyncio.to_thread(installed, directory, "hello")
        yoga = await asyncio.to_thread(yoga_installed, directory / "yoga")
        commands["Strawberry (aiohttp)"] = [str(python), str(PEERS / "strawberry_hello.py"), str(ports[2]), GREETING]
        commands["Yoga (node:http)"] = [str(NODE), str(yoga), str(ports[3]), GREETING]
    found: dict[str, list[Rate]] = {name: [] for name in commands}
    for _ in range(given.runs):
        for (name, command), port in zip(commands.items(), ports, strict=False):
            with running(command, port) as server:
                found[name].append(await rate(server, given.connections, given.seconds))
    for name, rates in found.items():
        report(name, rates, found["graphql-fn"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
    else:
        with tempfile.TemporaryDirectory(prefix="hello-") as temporary:
            uvloop.run(main(options, Path(temporary)))
