"""Replay of a stream into the tracker's read model in SQLite: events per second and memory, beside only reading the stream.

python scripts/bench/replay.py [--events 1000000] [--under-way 500] [--runs 3] [--data-dir DIR]

Each measurement is a process of its own, which begins with an empty database. `--under-way` is how many tasks have begun and not
ended at any moment: the more, the fewer rows are written once for several events. `--data-dir` keeps the stream for another run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import uvloop
from tracker import TrackerLog

from eventlog import streams
from eventlog.declarations import load
from eventlog.embedded import EmbeddedServer
from eventlog.jetstream.batch import MOST_MESSAGES
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from projections.fold import dump
from projections.migrations import Migrations
from projections.projector import BATCH, Projector
from projections.sqlite import SQLiteStore
from projections.tracker import MODEL

MEASUREMENTS = {"bare": "reading the stream only", "model": "into the read model"}


async def generate(log: JetStreamLog, events: int, under_way: int) -> None:
    """Fill an empty stream, half of the tasks under way in each batch."""
    tasks, start, together = TrackerLog(under_way=under_way), time.perf_counter(), min(under_way // 2, MOST_MESSAGES)
    for _ in range(events // together):
        await log.append_together(tasks.batch(together))
    print(f"wrote {events:,} events, {events / (time.perf_counter() - start):,.0f}/s", flush=True)


class Memory:
    """The resident memory of this process, looked at four times a second: what a replay takes in the end, and at most."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._process = psutil.Process()

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(0.25)

    def look(self) -> None:
        """Take one sample, in MB."""
        self.samples.append(self._process.memory_info().rss / 1e6)

    def tenths(self) -> list[int]:
        """The largest of each tenth of the time."""
        count = len(self.samples)
        return [round(max(self.samples[count * n // 10 : max(count * (n + 1) // 10, count * n // 10 + 1)])) for n in range(10)]


async def measure(what: str, url: str) -> dict[str, Any]:
    """One replay: events, seconds, memory."""
    memory = Memory()
    with tempfile.TemporaryDirectory(prefix="replay-") as directory:
        async with Connection.open(url, name="bench-replay") as connection:
            log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
            head = await log.head()
            memory.look()
            watch = asyncio.create_task(memory.watch())
            before, start = time.process_time(), time.perf_counter()
            if what == "bare":
                seconds = await read_only(log, head.last, start)
                found = {}
            else:
                async with SQLiteStore(Path(directory) / "read.db") as store:
                    await Migrations(store, MODEL).up()
                    before, start = time.process_time(), time.perf_counter()
                    await Projector(log, store, MODEL).run(until=head.last)
                    seconds = time.perf_counter() - start
                    found = {name: table.rows for name, table in (await dump(store, MODEL)).tables.items() if table.rows}
            busy = time.process_time() - before
            watch.cancel()
    return {"events": head.last, "seconds": seconds, "busy": busy, "memory": memory.tenths(), "rows": found}


async def read_only(log: JetStreamLog, last: int, start: float) -> float:
    """Follow the log and do nothing with it."""
    after = 0
    batches: Any = log.follow(after=0, until=last, batch=BATCH)
    async with aclosing(batches):
        async for commits in batches:
            assert commits[0].sequence == after + 1
            after = commits[-1].sequence
    assert after == last
    return time.perf_counter() - start


def in_its_own_process(what: str, url: str) -> dict[str, Any]:
    """Measure in a process that has done nothing else."""
    command = [sys.executable, __file__, "--measure", what, "--url", url]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


async def main(events: int, under_way: int, runs: int, data_dir: Path) -> None:
    """Write the stream, replay it, print."""
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}", end=", ")
    print(f"SQLite {sqlite3.sqlite_version}, load {os.getloadavg()[0]:.1f}")
    async with EmbeddedServer(data_dir) as server, Connection.open(server.url, name="bench") as connection:
        info = connection.client.connected_server_version
        print(f"nats-server {info.major}.{info.minor}.{info.patch}")
        await streams.apply(connection, load().only(MODEL.stream))
        log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
        if not (await log.head()).last:
            await generate(log, events, under_way)
        total = (await log.head()).last
        rates: dict[str, list[float]] = {what: [] for what in MEASUREMENTS}
        for run in range(runs):
            for what, description in MEASUREMENTS.items():
                result = await asyncio.to_thread(in_its_own_process, what, server.url)
                rate = result["events"] / result["seconds"]
                rates[what].append(rate)
                print(
                    f"run {run + 1}, {description}: {rate:,.0f} events/s, {result['busy'] / result['seconds']:.2f} cores, "
                    f"memory per tenth of the time {result['memory']} MB {result['rows'] or ''}",
                    flush=True,
                )
    for what, values in rates.items():
        print(f"{MEASUREMENTS[what]:24} {median(values):>9,.0f} events/s  ({min(values):,.0f} to {max(values):,.0f})")
    ratios = sorted(model / bare for model, bare in zip(rates["model"], rates["bare"], strict=True))
    print(f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) over {total:,} events")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--under-way", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(uvloop.run(measure(given.measure, given.url))))
    elif given.data_dir:
        uvloop.run(main(given.events, given.under_way, given.runs, given.data_dir))
    else:
        with tempfile.TemporaryDirectory(prefix="replay-") as temporary:
            uvloop.run(main(given.events, given.under_way, given.runs, Path(temporary)))
