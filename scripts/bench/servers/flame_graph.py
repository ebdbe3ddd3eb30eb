"""Flame graphs of the servers under load, and the share of each part: bookings, reads, a replay, events for a dashboard.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/servers/flame_graph.py [--only booking] [--connections 64]
        [--images docs/images]

py-spy samples the server from outside, 500 times a second, with the packages of the extra `bench_profile` in a temporary
environment. It needs the right to read the memory of other processes: root, or `kernel.yama.ptrace_scope` 0. The share of a part
is the time that the innermost function of this part, and of libraries that it calls, is on the processor. The rest of the time
the server waits: for the broker, for a client, or for another thread.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import attrs
import psutil
import uvloop

from bench.helpers import flames, large
from bench.helpers.http import Load, get, load
from bench.helpers.large_stock import Stock
from bench.helpers.measuring import show_machine
from bench.helpers.pantry import Server, code, movements, pantry, prepare
from bench.helpers.peer_python import installed
from bench.helpers.tracker import queued
from bench.servers.scale import STORE, service
from eventlog.admin import reconcile
from eventlog.admin.declarations import load_declarations as declared
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from gctd.readmodel import MODEL as TRACKER
from pantry.readmodel.model import MODEL as PANTRY

RATE = 500
"""Samples a second."""
PRODUCTS = 2000
REPLAYED = large.Size(commits=400_000, aggregates=20_000, tasks=0, repositories=0, functions=0)
START = 3.0
"""Seconds of load around a sampling, since the sampler needs a moment."""
DASHBOARDS, EVENTS = 100, 100
"""Open event streams of dashboards, and events a second."""


@attrs.frozen
class Sampler:
    """py-spy, with the seconds for which it samples."""

    program: Path
    seconds: float

    async def sample(self, process: psutil.Process) -> Sampled:
        """Sample all threads of a process that are on a processor."""
        with tempfile.TemporaryDirectory(prefix="samples-") as folder:
            file = Path(folder) / "stacks"
            spy = await asyncio.create_subprocess_exec(
                *(self.program, "record", "--pid", str(process.pid), "--duration", f"{self.seconds:.0f}", "--rate", str(RATE)),
                *("--format", "raw", "--full-filenames", "--output", file),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            began = sum(process.cpu_times()[:2])
            output, _ = await spy.communicate()
            busy = (sum(process.cpu_times()[:2]) - began) / self.seconds
            if spy.returncode:
                raise SystemExit(output.decode())
            stacks = flames.parse(file.read_text(encoding="utf-8").splitlines())
        taken = re.search(rb"Samples: (\d+)", output)
        return Sampled(stacks, int(taken[1]) if taken else sum(stacks.values()), busy)


@attrs.frozen
class Sampled:
    """Stacks, the number of samples, and the processor time of the server in seconds per second."""

    stacks: Mapping[flames.Stack, int]
    taken: int
    busy: float

    def show(self, name: str, note: str) -> None:
        """Print the shares of the parts: of the time on the processor."""
        total = sum(self.stacks.values())
        print(f"{name}: {note}; {self.busy:.0%} of a core, {total:,} samples, load {os.getloadavg()[0]:.1f}")
        for part, count in flames.shares(self.stacks).items():
            print(f"  {part:14} {count / total:6.1%} of the processor time, {count / total * self.busy:6.1%} of the time")


Measured = tuple[Sampled, str]
Work = Callable[[Server, float], Coroutine[Any, Any, Load]]


async def booking(sampler: Sampler, directory: Path, connections: int) -> Measured:
    """Movements of random products."""

    async def book(server: Server, seconds: float) -> Load:
        return await movements(server, products=PRODUCTS, connections=connections, seconds=seconds)

    return await _under_load(sampler, directory, book, f"movements booked over {connections} connections")


async def read(sampler: Sampler, directory: Path, connections: int) -> Measured:
    """Random products, each by its code."""
    requests = [get(f"/api/v1/products/{code(number)}") for number in range(PRODUCTS)]

    async def ask(server: Server, seconds: float) -> Load:
        port = server.port
        return await load(port, request=lambda: random.choice(requests), connections=connections, seconds=seconds)  # noqa: S311

    return await _under_load(sampler, directory, ask, f"products read over {connections} connections")


async def _under_load(sampler: Sampler, directory: Path, work: Work, name: str) -> Measured:
    async with EmbeddedServer(directory / "nats") as nats, pantry(nats, directory) as server:
        await prepare(server, PRODUCTS)
        await work(server, 1.0)
        loading = asyncio.create_task(work(server, sampler.seconds + START))
        await asyncio.sleep(START / 2)
        sampled = await sampler.sample(server.process)
        done = await loading
    return sampled, f"{name}, {done.rate:,.0f}/s, p50 {done.percentile(0.5):.2f} ms"


async def replay(sampler: Sampler, directory: Path, connections: int) -> Measured:
    """The pantry with empty tables."""
    del connections
    async with EmbeddedServer(directory / "nats") as nats:
        async with Connection.open(nats.url, name="flame-graph") as connection:
            await reconcile.apply_declarations(connection, declared().only(PANTRY.stream, "PANTRY_KEYS"))
            await Stock(JetStreamLog(connection, PANTRY.stream, PANTRY.registry), REPLAYED).write()
        async with pantry(nats, directory) as server:
            before = await server.reached()
            sampled = await sampler.sample(server.process)
            rate = (await server.reached() - before) / sampler.seconds
    return sampled, f"commits replayed, {rate:,.0f}/s"


async def event(sampler: Sampler, directory: Path, connections: int) -> Measured:
    """New tasks of the tracker, while dashboards follow its events."""
    del connections
    async with EmbeddedServer(directory / "nats", max_file_store=STORE) as nats, service("gctd", nats, directory, 0) as tracker:
        streams = [await asyncio.open_connection("127.0.0.1", tracker.client.port) for _ in range(DASHBOARDS)]
        for _, writer in streams:
            writer.write(get("/api/sse"))
        async with Connection.open(nats.url, name="flame-graph") as connection, asyncio.TaskGroup() as group:
            log = JetStreamLog(connection, TRACKER.stream, TRACKER.registry)
            followers = [group.create_task(_follow(reader)) for reader, _ in streams]
            appending = group.create_task(_append(log))
            await asyncio.sleep(START / 2)
            sampled = await sampler.sample(tracker.process)
            for task in (*followers, appending):
                task.cancel()
        for _, writer in streams:
            writer.close()
    return sampled, f"{EVENTS} events a second to {DASHBOARDS} dashboards"


async def _follow(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


async def _append(log: JetStreamLog) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(10**9):
        await log.append(queued(number))
        await asyncio.sleep(max(0.0, began + number / EVENTS - loop.time()))


KINDS: Mapping[str, Callable[[Sampler, Path, int], Coroutine[Any, Any, Measured]]] = {
    "booking": booking,
    "read": read,
    "replay": replay,
    "event": event,
}


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Sample, print, draw."""
    show_machine()
    sampler = Sampler(await asyncio.to_thread(_profiler, directory), given.seconds)
    for name in given.only or KINDS:
        place = directory / name
        place.mkdir()
        sampled, note = await KINDS[name](sampler, place, given.connections)
        sampled.show(name, note)
        if given.images is not None:
            (given.images / f"flame-{name}.svg").write_text(flames.picture(sampled.stacks, note), encoding="utf-8")


def _profiler(directory: Path) -> Path:
    return installed(directory, "bench_profile").parent / "py-spy"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=tuple(KINDS), help="only this one; may be repeated")
    parser.add_argument("--connections", type=int, default=64, help="connections of bookings and reads (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of each sampling (default: %(default)s)")
    parser.add_argument("--images", type=Path, help="folder for the pictures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flame-graph-") as temporary:
        uvloop.run(main(arguments, Path(temporary)))
