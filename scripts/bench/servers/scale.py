"""A large system: how long it takes to start and to replay, its memory, its sizes on disk, and the latency of reads.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/servers/scale.py --part 100
    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/servers/scale.py --data-dir DIR

The whole system has 10,000,000 commits with one event each, 1,000,000 aggregates, 100,000 tasks, 5,000 repositories, and
reports with 2,000,000 functions. `--part` divides all of these. The log is written in batches of 1,000 by the log itself. Then
the broker, the pantry and the tracker start as processes, first with empty tables, which they replay, then once more with these
tables. All requests go over one connection, one after the other, at random places. `--data-dir` keeps the data for another run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import psutil
import uvloop

from bench.helpers import large
from bench.helpers.http import Client
from bench.helpers.large import Repositories, Size
from bench.helpers.large_stock import Stock
from bench.helpers.measuring import show_machine
from bench.helpers.processes import started
from bench.servers.scale_requests import READS_OF, Request
from eventlog.admin import reconcile
from eventlog.admin.declarations import load_declarations
from eventlog.embedded.nats import GIB, EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from gctd.broker.blobs import BlobStore
from gctd.readmodel import MODEL as TRACKER
from pantry.readmodel.model import MODEL as PANTRY
from projections.projector.projector import Projector
from projections.rebuild.rebuild import fill
from projections.stores.databases import store_at
from terminalkit.runtime.event_loop import run_busy

STORE = 60 * GIB
LOG = "24GiB"
"""Limit of each stream of events. The limits of `streams.yaml`, 1 and 3 GiB, are reached long before."""
REPLAY = 3600.0
"""Longest time for a replay, in seconds."""
READS, SECONDS = 300, 3.0
"""A request is measured this many times, or for this many seconds."""
IDLE = 10.0
"""Seconds for which the idle system is measured."""


@attrs.frozen
class Running:
    """A service that was started, with the seconds until it answered and until its tables were complete."""

    name: str
    client: Client
    process: psutil.Process
    answered: float
    complete: float


@asynccontextmanager
async def service(name: str, nats: EmbeddedServer, directory: Path, head: int) -> AsyncIterator[Running]:
    """Start `pantry serve` or `gctd serve`, and wait until it shows the log up to `head`."""
    prefix, database = name.upper(), directory / f"{name}.db"
    settings = {
        f"{prefix}_NATS_URL": nats.url,
        f"{prefix}_DATABASE_URL": f"sqlite:{database}",
        f"{prefix}_EVENT_STORE_MAX_BYTES": LOG,
        f"{prefix}_LOG_LEVEL": "error",
        "GCTD_CACHE_DIRECTORY": str(directory / "cache"),
    }
    path = "/api/v1/categories?limit=1" if name == "pantry" else "/api/workers"
    began = time.perf_counter()
    async with started(name, settings) as one:
        client, answered = Client(one.port), time.perf_counter() - began
        async with asyncio.timeout(REPLAY):
            while await _reached(client, path) < head or (await client.get("/readyz")).status != 200:  # noqa: ASYNC110 - a server sets no event
                await asyncio.sleep(0.05)
        yield Running(name, client, one.process, answered, time.perf_counter() - began)


async def _reached(client: Client, path: str) -> int:
    answer = await client.get(path)
    return answer.field(b"event-sequence") if answer.status == 200 else -1


def memory(process: psutil.Process) -> str:
    """Resident memory now, and the most until now."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    now, most = (int(fields[name].split()[0]) / 1e3 for name in ("VmRSS", "VmHWM"))
    return f"{now:,.0f} MB, at most {most:,.0f} MB"


def on_disk(place: Path) -> int:
    """Bytes of a file or a directory."""
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files)


def show_sizes(directory: Path) -> None:
    """Print the sizes of streams and tables."""
    for place in (*sorted((directory / "nats").glob("jetstream/*/streams/*")), *sorted(directory.glob("*.db*"))):
        if (size := on_disk(place)) > 10**5:
            print(f"on disk: {place.name:24} {size / 1e6:12,.1f} MB", flush=True)


async def timed(name: str, work: Awaitable[object]) -> float:
    """Print and return the seconds that something takes."""
    began = time.perf_counter()
    await work
    seconds = time.perf_counter() - began
    print(f"{name}: {seconds:,.1f} s", flush=True)
    return seconds


async def measured(client: Client, request: Request) -> str:
    """Ask at random places, and give p50, p99 and the size of the last answer."""
    places = random.Random(2)  # noqa: S311 - a load, not a secret
    taken: list[float] = []
    size, until = 0, time.perf_counter() + SECONDS
    while len(taken) < READS and (not taken or time.perf_counter() < until):
        asked = request(places.randrange(2**40))
        began = time.perf_counter()
        answer = await client.ask(asked)
        taken.append((time.perf_counter() - began) * 1000)
        size = len(answer.body)
        if answer.status not in {200, 201}:
            return f"status {answer.status} after {taken[-1]:,.1f} ms: {asked!r}"
    p99 = statistics.quantiles(taken, n=100)[98] if len(taken) >= 100 else max(taken)
    return f"p50 {statistics.median(taken):9,.2f} ms  p99 {p99:9,.2f} ms  {size:12,} bytes  {len(taken)} times"


async def write(nats: EmbeddedServer, size: Size, names: Sequence[str]) -> Mapping[str, int]:
    """Write the logs of these services, unless they are there. Returns their last sequences."""
    async with Connection.open(nats.url, name="scale") as connection:
        changed = {model.stream: {"max_bytes": LOG} for model in (PANTRY, TRACKER)}
        await reconcile.apply_declarations(connection, load_declarations(overrides=changed))
        logs = [JetStreamLog(connection, model.stream, model.registry) for model in (PANTRY, TRACKER)]
        stock, tracker = logs
        if "pantry" in names and not (await stock.head()).last:
            seconds = await timed("written, pantry", Stock(stock, size).write())
            print(f"  {(await stock.head()).last / seconds:,.0f} commits/s", flush=True)
        if "gctd" in names and not (await tracker.head()).last:
            await timed("written, tracker", Repositories(tracker, BlobStore(connection, "gctd-blobs"), size).write())
        return {name: (await log.head()).last for name, log in zip(READS_OF, logs, strict=True)}


async def serve(nats: EmbeddedServer, directory: Path, size: Size, heads: Mapping[str, int], *, by_fill: bool) -> None:
    """Start the services with empty tables, or fill these first, then start once more, and measure the requests."""
    for name, head in heads.items():
        if (directory / f"{name}.db").exists():
            continue
        if by_fill:
            await filled(name, nats, directory, head)
            continue
        async with service(name, nats, directory, head) as one:
            print(
                f"{name}: first start answers after {one.answered:.1f} s, {head:,} commits replayed after {one.complete:.1f} s "
                f"({head / one.complete:,.0f}/s), memory {memory(one.process)}",
                flush=True,
            )
    async with AsyncExitStack() as stack:
        running = [await stack.enter_async_context(service(name, nats, directory, head)) for name, head in heads.items()]
        for one in running:
            print(f"{one.name}: start answers after {one.answered:.2f} s, complete after {one.complete:.2f} s", flush=True)
        processes = {"broker": psutil.Process(nats.pid), **{one.name: one.process for one in running}}
        print("memory after the start: " + "; ".join(f"{name} {memory(one)}" for name, one in processes.items()), flush=True)
        for one in running:
            for name, request in READS_OF[one.name](size).items():
                print(f"{one.name}: {name:34} {await measured(one.client, request)}", flush=True)
        print("memory after the reads: " + "; ".join(f"{name} {memory(one)}" for name, one in processes.items()), flush=True)
        spent = {name: -sum(one.cpu_times()[:2]) for name, one in processes.items()}
        await asyncio.sleep(IDLE)
        idle = {name: (spent[name] + sum(one.cpu_times()[:2])) / IDLE for name, one in processes.items()}
        print("idle, of a core: " + "; ".join(f"{name} {part:.1%}" for name, part in idle.items()), flush=True)


async def filled(name: str, nats: EmbeddedServer, directory: Path, head: int) -> None:
    """Fill the tables of a service as `projections rebuild` fills a copy, in a separate process."""
    command = (sys.executable, __file__, "--fill", name, "--data-dir", str(directory), "--url", nats.url)
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    seconds = time.perf_counter() - began
    print(
        f"{name}: tables filled after {seconds:.1f} s ({head / seconds:,.0f} commits/s), {output.decode().splitlines()[-1]}",
        flush=True,
    )


async def fill_tables(name: str, url: str, directory: Path) -> None:
    """Fill empty tables in this process."""
    model = PANTRY if name == "pantry" else TRACKER
    async with Connection.open(url, name="scale-fill") as connection, store_at(f"sqlite:{directory / name}.db") as store:

        async def run(projector: Projector, until: int) -> None:
            await projector.run(until=until)

        await fill(store, JetStreamLog(connection, model.stream, model.registry), model, run=run)
    print(f"{time.process_time():.1f} s of processor time, memory {memory(psutil.Process())}")


async def restart(nats: EmbeddedServer) -> None:
    """Start the broker after an end in order, and after a kill."""
    await nats.stop()
    await timed("broker: start after a stop", nats.start())
    print(f"broker: memory {memory(psutil.Process(nats.pid))}", flush=True)
    await nats.kill()
    await timed("broker: start after kill -9", nats.start())


async def main(directory: Path, size: Size, names: Sequence[str], *, by_fill: bool) -> None:
    """Make the system, measure it, print."""
    show_machine()
    print(
        f"{size}, {size.products:,} products, {size.movements:,} movements, {size.of_tracker:,} commits of the tracker",
        flush=True,
    )
    async with EmbeddedServer(directory / "nats", max_file_store=STORE, start_timeout=REPLAY) as nats:
        heads = await write(nats, size, names)
        print(f"broker: memory {memory(psutil.Process(nats.pid))}", flush=True)
        await restart(nats)
        await serve(nats, directory, size, {name: heads[name] for name in names}, by_fill=by_fill)
    show_sizes(directory)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, metavar="N", help="the Nth part of the system (default: the whole)")
    parser.add_argument("--data-dir", type=Path, help="folder that keeps the data")
    parser.add_argument(
        "--rebuild", action="store_true", help="tables are filled as by `projections rebuild`, not by a first start"
    )
    parser.add_argument("--only", choices=tuple(READS_OF), help="write, start and measure only this service")
    parser.add_argument("--fill", choices=tuple(READS_OF), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    services = (arguments.only,) if arguments.only else tuple(READS_OF)
    wanted = large.WHOLE.parted(arguments.part)
    if arguments.fill:
        run_busy(fill_tables(arguments.fill, arguments.url, arguments.data_dir))
    elif arguments.data_dir:
        uvloop.run(main(arguments.data_dir, wanted, services, by_fill=arguments.rebuild))
    else:
        with tempfile.TemporaryDirectory(prefix="scale-") as temporary:
            uvloop.run(main(Path(temporary), wanted, services, by_fill=arguments.rebuild))
