"""From an append to its rows in the tracker's read model: milliseconds, at a steady rate, in one process as in `gctd serve`.

PYTHONPATH=.:scripts python scripts/bench/readside/visible.py [--rate 200] [--seconds 10] [--runs 5]

Each event is due at its own moment, whatever the fate of those before it, and its time counts from then on: a stall shows in
all events that it holds up. Measured in the same run: the time to the acknowledgement alone.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import uvloop

from bench.helpers import queued, show_machine
from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.readmodel import MODEL
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.stores.sqlite import SQLiteStore


async def run_once(
    log: JetStreamLog, store: SQLiteStore, projector: Projector, first: int, count: int, rate: float
) -> list[list[float]]:
    """Append at that rate: seconds to the acknowledgement, to the row, and from the one to the other, of each event."""
    start = time.perf_counter()

    async def one(number: int) -> tuple[float, float, float]:
        due = start + number / rate
        await asyncio.sleep(due - time.perf_counter())
        proposal = queued(first + number)
        appended = await log.append(proposal)
        acknowledged = time.perf_counter() - due
        await projector.wait_for(appended.sequence, 10)
        row = await store.fetch_one("SELECT sequence FROM tasks WHERE id = $1", proposal.aggregate.id)
        visible = time.perf_counter() - due
        assert row == {"sequence": appended.sequence}
        return acknowledged, visible, visible - acknowledged

    return [list(times) for times in zip(*await asyncio.gather(*(one(number) for number in range(count))), strict=True)]


async def main(rate: float, seconds: float, runs: int, directory: Path) -> None:
    """Measure some times, print."""
    show_machine()
    async with (
        EmbeddedServer(directory / "nats") as server,
        Connection.open(server.url, name="bench") as connection,
        SQLiteStore(directory / "read.db") as store,
    ):
        version = connection.client.connected_server_version
        print(f"nats-server {version.major}.{version.minor}.{version.patch}, {rate:g} events/s")
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
        await Migrations(store, MODEL).up()
        log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
        projector = Projector(log, store, MODEL)
        projecting = asyncio.create_task(projector.run())
        count = int(rate * seconds)
        await run_once(log, store, projector, 0, int(rate), rate)
        found: dict[str, list[list[float]]] = {"acknowledged": [], "visible": [], "between them": []}
        for run in range(runs):
            times = await run_once(log, store, projector, int(rate) + run * count, count, rate)
            for name, values in zip(found, times, strict=True):
                percentiles = quantiles(values, n=100)
                found[name].append([percentiles[49] * 1e3, percentiles[98] * 1e3, max(values) * 1e3])
            p50, p99, most = found["visible"][-1]
            print(f"run {run + 1}: visible p50 {p50:.2f} ms, p99 {p99:.2f} ms, most {most:.2f} ms", flush=True)
        projecting.cancel()
        await asyncio.wait({projecting})
    for name, rows in found.items():
        columns = zip(("p50", "p99", "most"), zip(*rows, strict=True), strict=True)
        print(f"{name:13}", *(f"{what} {median(v):.2f} ms ({min(v):.2f} to {max(v):.2f})" for what, v in columns))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="visible-") as temporary:
        uvloop.run(main(given.rate, given.seconds, given.runs, Path(temporary)))
