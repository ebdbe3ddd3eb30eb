"""A stream split by the hash of the aggregate, on three nats-servers: appends, and a replay with a projector for each part.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/cluster/partitions.py [--parts 1,2,4] [--writers 64] [--seconds 5]

Each part is a stream with three replicas, and its leader is another server if there is one left. The writers append to distinct
aggregates, each to the part that its hash names. Then each part is replayed by a process with its own SQLite tables, all at the
same time. The three servers, the writers and the projectors share the processors of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import attrs
import uvloop

from bench.helpers.measuring import show_machine
from eventlog import AggregateId, Commit, NewCommit, NewEvent, Registry
from eventlog.admin.declarations import EVENT_STREAM, parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commit import Proposal
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.support.ids import hex_digits
from projections.model import Change, Column, Projection, Put, ReadModel, Table
from projections.projector.projector import Projector
from projections.rebuild.rebuild import fill
from projections.stores.databases import store_at
from terminalkit.runtime.event_loop import run_busy
from tests.support.cluster.servers import SIZE, Cluster

STOCKS = Table("stocks", (Column("id"), Column("amount", "integer"), Column("sequence", "integer")), key=("id",))
FILLED, TOGETHER = 100_000, 1000
"""Commits that are added to all parts together before the replay, in batches."""


@attrs.frozen
class Moved:
    """An event of about the size of a movement of the pantry."""

    amount: int
    note: str = "delivered by the early van, two boxes were open, and the third one comes on Thursday"


@attrs.frozen
class Stock:
    """The state after it."""

    amount: int
    name: str = "Wheat flour, type 405, 1 kg"


@attrs.frozen
class Part:
    """One part of a split stream."""

    of: int
    number: int

    @property
    def stream(self) -> str:
        """Its name."""
        return f"PART_{self.of}_{self.number}"

    @property
    def category(self) -> str:
        """The category of its aggregates."""
        return f"part_{self.of}_{self.number}.stock"

    def model(self) -> ReadModel:
        """Its read model, with its own registry."""
        registry = Registry()
        registry.event("moved")(Moved)
        registry.state(self.category)(Stock)
        projection = Projection("stocks", 1, (STOCKS,), {self.category: _row})
        return ReadModel(name="part", stream=self.stream, registry=registry, projections=(projection,))

    def proposal(self, id_: str) -> Proposal:
        """A first commit of an aggregate."""
        commit = NewCommit(id=hex_digits(), at=datetime.now(UTC), events=(NewEvent(Moved(3)),), state=Stock(3))
        return Proposal(aggregate=AggregateId(self.category, id_), expected=0, commit=commit)


def _row(commit: Commit) -> Iterable[Change]:
    return (Put(STOCKS, (commit.aggregate.id, commit.state.amount, commit.sequence)),)


def part_of(id_: str, parts: int) -> int:
    """The part that an aggregate belongs to."""
    return int.from_bytes(sha256(id_.encode()).digest()[:4], "big") % parts


async def appended(logs: list[tuple[Part, JetStreamLog]], writers: int, seconds: float) -> list[float]:
    """Append by all writers; the seconds of each append."""
    taken: list[float] = []
    until = time.perf_counter() + seconds

    async def write() -> None:
        while (began := time.perf_counter()) < until:
            id_ = hex_digits()
            part, log = logs[part_of(id_, len(logs))]
            await log.append(part.proposal(id_))
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(write() for _ in range(writers)))
    return taken


async def filled(logs: list[tuple[Part, JetStreamLog]]) -> None:
    """Add commits to all parts in batches."""

    async def one(part: Part, log: JetStreamLog) -> None:
        for _ in range(FILLED // len(logs) // TOGETHER):
            await log.append_together([part.proposal(hex_digits()) for _ in range(TOGETHER)])

    await asyncio.gather(*(one(*each) for each in logs))


def replayed(parts: list[Part], urls: str, directory: Path) -> tuple[float, float]:
    """Seconds until all parts are replayed, and the processor time of their processes."""
    began = time.perf_counter()
    commands = [[sys.executable, __file__, "--replay", f"{part.of}/{part.number}", "--url", urls] for part in parts]
    running = [
        subprocess.Popen([*command, "--database", str(directory / f"{part.stream}.db")], stdout=subprocess.PIPE)
        for part, command in zip(parts, commands, strict=True)
    ]
    busy = [float(process.communicate()[0].split()[-1]) for process in running]
    return time.perf_counter() - began, sum(busy)


async def replay(part: Part, url: str, database: str) -> float:
    """Replay one part in this process; the processor time that it takes."""
    model = part.model()

    async def run(projector: Projector, until: int) -> None:
        await projector.run(until=until)

    async with Connection.open(url, name="bench-part") as connection, store_at(f"sqlite:{database}") as store:
        before = time.process_time()
        await fill(store, JetStreamLog(connection, part.stream, model.registry), model, run=run)
    return time.process_time() - before


async def measure(cluster: Cluster, parts: list[Part], directory: Path, given: argparse.Namespace) -> None:
    """Measure one number of parts, and print."""
    fields = {**EVENT_STREAM, "max_bytes": "256MiB"}
    declared = {part.stream: {**fields, "subjects": [f"{part.category}.*"]} for part in parts}
    async with Connection.open(cluster.urls, name="bench-parts") as connection:
        await apply_declarations(connection, parse({"streams": declared}, replicas=SIZE))
        logs = [(part, JetStreamLog(connection, part.stream, part.model().registry)) for part in parts]
        leaders = {(await cluster.leader(part.stream)).name for part in parts}
        await appended(logs, given.writers, 1.0)
        taken = await appended(logs, given.writers, given.seconds)
        await filled(logs)
        total = sum([(await log.head()).last for _, log in logs])
    seconds, busy = await asyncio.to_thread(replayed, parts, cluster.urls, directory)
    cuts = statistics.quantiles(taken, n=100)
    print(
        f"{len(parts)} parts, leaders on {len(leaders)} servers: {len(taken) / given.seconds:,.0f} appends/s, p50 "
        f"{cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms; replay of {total:,} commits {total / seconds:,.0f}/s, "
        f"{total / busy:,.0f} in a second of processor time, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Measure all numbers of parts, in turn."""
    show_machine()
    async with Cluster.running(directory) as cluster:
        for count in map(int, given.parts.split(",")):
            await measure(cluster, [Part(count, number) for number in range(count)], directory, given)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="1,2,4")
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--replay", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--database", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.replay:
        of, at = map(int, arguments.replay.split("/"))
        print(run_busy(replay(Part(of, at), arguments.url, arguments.database)))
    else:
        with tempfile.TemporaryDirectory(prefix="parts-") as temporary:
            uvloop.run(main(arguments, Path(temporary)))
