"""A rebuild under reads and writes: its effect on readers, the time of the switch, the precision of the time left.

PYTHONPATH=.:scripts python scripts/bench/readside/rebuild.py [--events 1000000] [--rate 200] [--data-dir DIR] [--postgres]

A service's read side serves a stream of the tracker, while `projections rebuild` rebuilds the read model in a separate process,
is killed at half, and resumed. In this time events are written and rows read, `--rate` of each a second. Printed are failed
reads, reads that went back in time, the switch and the rollback, and the time left to half of it as shown after a tenth, with
the real time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from bench.readside.replay import generate
from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load_declarations
from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from gctd.domain import worker
from gctd.readmodel import MODEL
from projections.errors import ProjectionError
from projections.rebuild.copies import Copies, CopyPart
from projections.rebuild.operations import Operation, OperationKind
from projections.store import Store
from projections.stores.databases import copies_at
from projections.stores.postgres.server import PostgresServer
from servicekit.feed import CommitFrames
from servicekit.read_side import ReadSide, migrated

PROGRAM = (sys.executable, "-c", "import sys; from projections.cli import main; sys.exit(main())")
UNDER_WAY = 500


class Reading:
    """Reads at a rate, and counts what should not happen."""

    def __init__(self, store: Store, rate: float) -> None:
        self._store = store
        self._rate = rate
        self.reads = self.failed = self.back = 0
        self.slowest = 0.0
        self._seen = 0

    async def run(self) -> None:
        """Read until cancelled: the highest sequence in the rows never falls."""
        while True:
            started = time.perf_counter()
            try:
                row = await self._store.fetch_one("SELECT sequence FROM projection_checkpoints WHERE projection = 'tasks'")
                assert row is not None
                self.back += row["sequence"] < self._seen
                self._seen = row["sequence"]
            except ProjectionError:
                self.failed += 1
            self.reads += 1
            took = time.perf_counter() - started
            self.slowest = max(self.slowest, took)
            await asyncio.sleep(max(0.0, 1 / self._rate - took))


async def write(log: JetStreamLog, rate: float) -> None:
    """Append events at a rate, one by one, each of a new aggregate."""
    for number in count():
        at, id_ = datetime.now(UTC), f"bench-{number}"
        started = worker.WorkerStarted(id=id_, session="s", host="h", pid=number, at=at)
        commit = NewCommit(id=id_, at=at, events=(NewEvent(started),), state=worker.evolve(None, started))
        await log.append(Proposal(aggregate=AggregateId(worker.CATEGORY, id_), expected=0, commit=commit))
        await asyncio.sleep(1 / rate)


async def copied(copies: Copies) -> int:
    """How far the copy is."""
    if CopyPart.NEW not in await copies.there():
        return 0
    copy = copies.reader(CopyPart.NEW)
    try:
        await copy.open()
        found = await copy.checkpoints()
    except ProjectionError:
        return 0
    finally:
        await copy.close()
    return min((found[p.name].sequence if p.name in found else 0 for p in MODEL.projections), default=0)


async def rebuild(command: str, environment: dict[str, str]) -> asyncio.subprocess.Process:
    """Start `projections rebuild` or `resume`."""
    return await asyncio.create_subprocess_exec(*PROGRAM, command, "--no-switch", env=environment)


async def estimate(copies: Copies, total: int, environment: dict[str, str]) -> None:
    """Begin. Print the predicted and the real time from a tenth to half of it. Kill it there."""
    process, begun, told, tenth, first = await rebuild("rebuild", environment), 0.0, 0.0, 0.0, 0
    while (position := await copied(copies)) < total // 2:
        now = time.perf_counter()
        if position and not begun:
            begun, first = now, position
        elif begun and not tenth and position >= total // 10 and position > first:
            tenth, told = now, (total // 2 - position) * (now - begun) / (position - first)
        await asyncio.sleep(0.02)
    took = time.perf_counter() - tenth
    process.kill()
    await process.wait()
    print(f"after a tenth {told:.1f} s were left to half of it, and it took {took:.1f} s ({told / took - 1:+.0%}); killed there")


async def timed(side: ReadSide, kind: OperationKind) -> float:
    """Have the read side switch or roll back; seconds."""
    started = time.perf_counter()
    await side.operations.do(Operation(kind=kind, database=""))
    return time.perf_counter() - started


async def measure(url: str, log: JetStreamLog, database: str, rate: float) -> None:
    """All of it on one stream."""
    environment = {**os.environ, "GCTD_NATS_URL": url, "GCTD_DATABASE_URL": database}
    frames = CommitFrames(log, {}, lambda _: ())
    async with migrated(database, MODEL) as store:
        side: Any = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            total = (await log.head()).last
            await side.projector.wait_for(total, 600)
            copies, reading = copies_at(database), Reading(store, rate)
            tasks = [asyncio.create_task(reading.run()), asyncio.create_task(write(log, rate))]
            await estimate(copies, total, environment)
            half = await copied(copies)
            process = await rebuild("resume", environment)
            assert await process.wait() == 0
            print(f"gone on with from sequence {half:,}, and verified")
            for kind in (OperationKind.SWITCH, OperationKind.ROLLBACK):
                print(
                    f"{kind.value}: {await timed(side, kind):.2f} s with the missing events; see `milliseconds` above for itself"
                )
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            written = (await log.head()).last - total
    print(f"{written:,} events were written in that time")
    print(f"{reading.reads:,} reads: {reading.failed} failed, {reading.back} went back, the slowest took {reading.slowest:.3f} s")


@asynccontextmanager
async def postgres() -> AsyncIterator[str]:
    """The address of an empty database on a private server, which is removed afterwards."""
    place = Path(tempfile.mkdtemp(prefix="bench-postgres-"))  # as root it runs as somebody who has to be able to enter
    try:
        async with PostgresServer(place) as server:
            await server.create("read")
            yield server.url("read")
    finally:
        shutil.rmtree(place)


async def main(events: int, rate: float, data_dir: Path, *, in_postgres: bool) -> None:
    """Write the stream, then measure."""
    async with EmbeddedServer(data_dir) as server, Connection.open(server.url, name="bench") as connection:
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
        log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
        if not (await log.head()).last:
            await generate(log, events, UNDER_WAY)
        async with postgres() if in_postgres else nullcontext(f"sqlite:{data_dir / 'read.db'}") as database:
            await measure(server.url, log, database, rate)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--postgres", action="store_true", help="the tables in a private Postgres, not in SQLite")
    given = parser.parse_args()
    if given.data_dir:
        uvloop.run(main(given.events, given.rate, given.data_dir, in_postgres=given.postgres))
    else:
        with tempfile.TemporaryDirectory(prefix="rebuild-") as temporary:
            uvloop.run(main(given.events, given.rate, Path(temporary), in_postgres=given.postgres))
