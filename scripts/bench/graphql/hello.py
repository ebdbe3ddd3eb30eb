"""`{ hello }` over HTTP: requests per second, with bare aiohttp and the same bytes, Strawberry, Ariadne and Yoga in the same run.

PYTHONPATH=.:scripts python scripts/bench/graphql/hello.py [--seconds 3] [--runs 5] [--connections 32] [--peer PYTHON]

Each server is one process, in Python on uvloop, measured in turns by keep-alive connections that send the next request
when the last is answered; requests are JSON bodies, logs are off. Strawberry has its own caches of documents on; Ariadne offers
none, and is measured as it comes and with one that was written for it. The processor time of a server by request depends less on
other programs of the machine. `--peer` names a Python that has the extra `bench`; by default it is put into a temporary
environment, as Yoga is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import cast

import attrs
import psutil
import uvloop
from aiohttp import web

from bench.helpers.listening import until_open
from bench.helpers.measuring import show_machine
from bench.helpers.peer_node import NODE
from bench.helpers.peer_node import installed as yoga_installed
from bench.helpers.peer_python import ROOT, installed
from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import free_port
from graphql_fn.core.hello import GREETING

PEERS = Path(__file__).parents[1] / "peers"
HELLO = json.dumps({"query": "{ hello }"}).encode()
ANSWER = json.dumps({"data": {"hello": GREETING}}, separators=(",", ":")).encode()


def request(body: bytes, content_type: str = "application/json", path: str = "/function/graphql") -> bytes:
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Accept: application/json\r\n\r\n" + body


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


# --- clients


class Client(asyncio.Protocol):
    """A connection: sends what it is given and waits for the whole answer."""

    def __init__(self) -> None:
        self._data = b""
        self._wanted = 0
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    async def ask(self, message: bytes) -> int:
        """The status of the answer."""
        self._data, self._wanted = b"", 0
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(message)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._wanted:
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._wanted = len(head) + 4 + int(length)
        if len(self._data) >= self._wanted and self._answer is not None and not self._answer.done():
            self._answer.set_result(int(self._data[9:12]))

    def connection_lost(self, _: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))


async def connect(port: int) -> Client:
    """A new connection."""
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
    return client


@attrs.frozen
class Rate:
    """Requests per second, and processor microseconds of the server for each."""

    per_second: float
    cpu: float


async def rate(server: Server, connections: int, seconds: float) -> Rate:
    """Ask as fast as answers come."""
    clients = [await connect(server.port) for _ in range(connections)]
    message = request(HELLO)
    answered = 0

    async def ask(client: Client, until: float) -> None:
        nonlocal answered
        while time.perf_counter() < until:
            status = await client.ask(message)
            assert status == 200, status
            answered += 1

    await asyncio.gather(*(ask(client, time.perf_counter() + 0.3) for client in clients))
    answered, cpu, began = 0, server.cpu, time.perf_counter()
    await asyncio.gather(*(ask(client, began + seconds) for client in clients))
    took, used = time.perf_counter() - began, server.cpu - cpu
    for client in clients:
        client.transport.close()
    return Rate(answered / took, used / answered * 1e6)


# --- the run


def report(name: str, rates: list[Rate], ours: list[Rate]) -> None:
    """One line for a server."""
    seen = sorted(rate.per_second for rate in rates)
    line = f"{name:28} {median(seen):7,.0f}/s ({seen[0]:,.0f} to {seen[-1]:,.0f})"
    ratio = median(mine.per_second / other.per_second for mine, other in zip(ours, rates, strict=True))
    print(f"{line}  {median(rate.cpu for rate in rates):5.0f} us of processor time each  ours is {ratio:.2f} times it")


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Measure in turns, print."""
    python = str(given.peer or await asyncio.to_thread(installed, directory))
    show_machine()
    print(f"aiohttp {version('aiohttp')}, graphql-core {version('graphql-core')}, {given.connections} connections")
    yoga = await asyncio.to_thread(yoga_installed, directory / "yoga", PEERS / "yoga.mjs")
    ports = [free_port() for _ in range(6)]
    commands = {
        "graphql-fn": [sys.executable, "-m", "graphql_fn", "serve"],
        "bare aiohttp": [sys.executable, __file__, "--bare", str(ports[1])],
        "Strawberry (aiohttp)": [python, str(PEERS / "strawberry_hello.py"), str(ports[2]), GREETING],
        "Ariadne (uvicorn)": [python, str(PEERS / "ariadne_hello.py"), str(ports[3]), GREETING, "plain"],
        "the same, cache added": [python, str(PEERS / "ariadne_hello.py"), str(ports[4]), GREETING, "cached"],
        "Yoga (node:http)": [str(NODE), str(yoga), str(ports[5]), GREETING],
    }
    found: dict[str, list[Rate]] = {name: [] for name in commands}
    for _ in range(given.runs):
        for (name, command), port in zip(commands.items(), ports, strict=True):
            with running(command, port) as server:
                found[name].append(await rate(server, given.connections, given.seconds))
    for name, rates in found.items():
        report(name, rates, found["graphql-fn"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--peer", help="a Python that has the extra `bench`")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
    else:
        with tempfile.TemporaryDirectory(prefix="hello-") as temporary:
            uvloop.run(main(options, Path(temporary)))
