"""Replay of a stream into the tracker's read model: events per second and memory, and only reading the stream.

PYTHONPATH=.:scripts python scripts/bench/readside/replay.py [--store sqlite|postgres] [--events 1000000] [--under-way 500]
    [--runs 3] [--peer-events 0] [--data-dir DIR]

Each measurement is a separate process, which begins with an empty database and fills it as `projections rebuild` fills a copy:
indexes that only queries need are made at the end, which counts. `--under-way` is how many tasks have begun and not
ended at any moment: the more, the fewer rows are written once for several events. `--peer-events` of them, from the first on,
are also given to the Python library `eventsourcing`, on the same kind of database. It is installed for that in a private
environment and writes the same rows, which are worked out for it. `--data-dir` keeps the stream for another run. Processor
time is the sum of the process itself and of Postgres, so that it can be compared on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import msgspec
import psutil
import uvloop

from bench.helpers import PEERS, TrackerLog, installed, show_machine
from eventlog import Commit
from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.append import MOST_MESSAGES
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.readmodel import MODEL
from projections.migrations import migrations_of
from projections.model import Put, Table
from projections.projector.projector import BATCH
from projections.rebuild.rebuild import fill
from projections.rebuild.verify import dump
from projections.stores.databases import store_at
from projections.stores.postgres.server import PostgresServer
from terminalkit.coroutine import run_busy

MEASUREMENTS = {
    "bare": "reading the stream only",
    "model": "into the read model",
    "peer": "eventsourcing, as many rows",
}


async def generate(log: JetStreamLog, events: int, under_way: int) -> None:
    """Fill an empty stream, half of the tasks under way in each batch."""
    tasks, start, together = TrackerLog(under_way=under_way), time.perf_counter(), min(under_way // 2, MOST_MESSAGES)
    for _ in range(events // together):
        await log.append_together(tasks.batch(together))
    print(f"wrote {events:,} events, {events / (time.perf_counter() - start):,.0f}/s", flush=True)


class Memory:
    """The resident memory of this process, looked at four times a second: at the end of a replay, and at most."""

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


async def measure(what: str, url: str, database: str) -> dict[str, Any]:
    """One replay: events, seconds, memory."""
    memory = Memory()
    with tempfile.TemporaryDirectory(prefix="replay-") as directory:
        address = database or f"sqlite:{Path(directory) / 'read.db'}"
        async with Connection.open(url, name="bench-replay") as connection:
            log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
            head = await log.head()
            memory.look()
            watch = asyncio.create_task(memory.watch())
            before, start = time.process_time(), time.perf_counter()
            if what == "bare":
                seconds = await read_only(log, head.last, start)
                busy, found, digest = time.process_time() - before, {}, ""
            else:
                async with store_at(address) as store:
                    before, start = time.process_time(), time.perf_counter()
                    await fill(store, log, MODEL)
                    seconds, busy = time.perf_counter() - start, time.process_time() - before
                    dumped = await dump(store, MODEL)
                    found = {name: table.rows for name, table in dumped.tables.items() if table.rows}
                    digest = dumped.digest
            watch.cancel()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "events": head.last,
        "seconds": seconds,
        "busy": busy,
        "beside": children.ru_utime + children.ru_stime,
        "memory": memory.tenths(),
        "rows": found,
        "digest": digest,
    }


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


def in_its_own_process(what: str, url: str, database: str) -> dict[str, Any]:
    """Measure in a process that has done nothing else."""
    command = [sys.executable, __file__, "--measure", what, "--url", url, "--database", database]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


@attrs.frozen
class Peer:
    """The library in a private environment, and the file of events for it."""

    python: Path
    events: Path

    def measure(self, database: str) -> dict[str, Any]:
        """Store the events, which is not measured, and replay them. `database`: the database of Postgres, else a file is made."""
        with tempfile.TemporaryDirectory(prefix="peer-") as directory:
            settings = _postgres(database) if database else _sqlite(Path(directory) / "peer.db")
            command = [self.python, PEERS / "eventsourcing_replay.py", self.events]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **settings})
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


async def prepared(log: JetStreamLog, store: str, events: int, directory: Path) -> Peer:
    """The library installed below a directory, and the first events of the log written down for it."""
    python = directory / "eventsourcing" / "bin" / "python"
    if not python.exists():
        await asyncio.to_thread(installed, directory, "eventsourcing")
    lines = [_header(store)]
    async for commits in log.follow(after=0, until=events):
        lines += map(_line, commits)
    file = directory / "peer-events"
    file.write_bytes(b"\n".join(lines))
    return Peer(python, file)


def _line(commit: Commit) -> bytes:
    rows = [
        (change.table.name, change.row)
        for projection in MODEL.projections
        for change in projection.apply(commit)
        if isinstance(change, Put)
    ]
    body = msgspec.json.decode(commit.data)
    return msgspec.json.encode((commit.aggregate.id, commit.body.events[0].type, body, rows))


def _header(store: str) -> bytes:
    tables = [
        statement for migration in migrations_of(MODEL, store) for statement in migration.up.split(";") if statement.strip()
    ]
    places = "?" if store == "sqlite" else "%s"
    puts = {table.name: _put(table, places) for projection in MODEL.projections for table in projection.tables}
    return msgspec.json.encode({"tables": tables, "puts": puts})


def _put(table: Table, place: str) -> str:
    values = ", ".join([place] * len(table.names))
    others = ", ".join(f"{name} = excluded.{name}" for name in table.names if name not in table.key)
    return (
        f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({values}) "  # noqa: S608 - constants
        f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {others}"
    )


def _sqlite(file: Path) -> Mapping[str, str]:
    return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(file)}


def _postgres(database: str) -> Mapping[str, str]:
    address = urlsplit(database)
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": address.path.lstrip("/"),
        "POSTGRES_HOST": parse_qs(address.query)["host"][0],
        "POSTGRES_USER": address.username or "",
        "POSTGRES_PASSWORD": "none is asked for",
    }


class Databases:
    """Empty databases of one kind, one after the other, and the processor time that their server has taken."""

    def __init__(self, server: PostgresServer | None) -> None:
        self._server = server
        self._made = 0

    async def empty(self) -> str:
        """The address of one; an empty text for a file that the measurement makes itself."""
        if self._server is None:
            return ""
        self._made += 1
        name = f"replay_{self._made}"
        await self._server.drop(name)
        await self._server.create(name)
        return self._server.url(name)

    def busy(self) -> float:
        """Seconds of the server's processes up to now, including ended ones."""
        if self._server is None:
            return 0.0
        postmaster = psutil.Process(self._server.pid)
        own = postmaster.cpu_times()
        ended = own.children_user + own.children_system
        return own.user + own.system + ended + sum(map(_seconds_of, postmaster.children()))


def _seconds_of(process: psutil.Process) -> float:
    """Its processor time; none if it has ended by now."""
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0


async def main(given: argparse.Namespace, data_dir: Path) -> None:
    """Write the stream, replay it, print."""
    show_machine()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddedServer(data_dir / "nats"))
        connection = await stack.enter_async_context(Connection.open(server.url, name="bench"))
        info = connection.client.connected_server_version
        print(f"nats-server {info.major}.{info.minor}.{info.patch}, read model in {given.store}")
        postgres = PostgresServer(data_dir / "postgres") if given.store == "postgres" else None
        if postgres is not None:
            await stack.enter_async_context(postgres)
        databases = Databases(postgres)
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
        log = JetStreamLog(connection, MODEL.stream, MODEL.registry)
        if not (await log.head()).last:
            await generate(log, given.events, given.under_way)
        peer = await prepared(log, given.store, given.peer_events, data_dir) if given.peer_events else None
        wanted = ["bare", "model", *(["peer"] if peer is not None else [])]
        rates: dict[str, list[float]] = {what: [] for what in wanted}
        digests = set[str]()
        frugal: dict[str, list[float]] = {what: [] for what in rates}
        for run in range(given.runs):
            for what, found in rates.items():
                database, before = await databases.empty(), databases.busy()
                if what == "peer":
                    assert peer is not None
                    result = await asyncio.to_thread(peer.measure, database)
                else:
                    result = await asyncio.to_thread(in_its_own_process, what, server.url, database)
                busy = result["busy"] + result.get("beside", 0.0) + databases.busy() - before
                digests |= {result["digest"]} if result.get("digest") else set()
                found.append(result["events"] / result["seconds"])
                frugal[what].append(result["events"] / busy)
                print(
                    f"run {run + 1}, {MEASUREMENTS[what]}: {found[-1]:,.0f} events/s, {frugal[what][-1]:,.0f} in a second of "
                    f"processor time ({result.get('beside', 0):.1f} s in child processes), "
                    f"memory per tenth of the time {result.get('memory')} MB {result.get('rows') or ''}",
                    flush=True,
                )
        assert len(digests) == 1, "the tables differ"
        report(rates, frugal, (await log.head()).last)


def report(rates: Mapping[str, Sequence[float]], frugal: Mapping[str, Sequence[float]], total: int) -> None:
    """Print medians, lowest and highest, and how they compare."""
    for unit, values in (("events/s", rates), ("events in a second of processor time", frugal)):
        for what, found in values.items():
            print(f"{MEASUREMENTS[what]:32} {median(found):>9,.0f} {unit} ({min(found):,.0f} to {max(found):,.0f})")
        for other in ("bare", "peer"):
            if other in values:
                ratios = sorted(model / beside for model, beside in zip(values["model"], values[other], strict=True))
                print(f"ratio to {other} {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), {total:,} events")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--under-way", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer-events", type=int, default=0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--database", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(run_busy(measure(arguments.measure, arguments.url, arguments.database))))
    elif arguments.data_dir:
        uvloop.run(main(arguments, arguments.data_dir))
    else:
        with tempfile.TemporaryDirectory(prefix="replay-") as temporary:
            Path(temporary).chmod(0o755)  # where root starts Postgres, somebody else runs it
            uvloop.run(main(arguments, Path(temporary)))
