"""Appends through the event log, durable (each synced before it is acknowledged), and bare nats-py in the same run.

PYTHONPATH=.:scripts python scripts/bench/log/append.py [--runs 5] [--writers 1,64] [--seconds 1.5]

(a) Appends per second to distinct aggregates, by writers that each wait for their answer, and by the same number of writers that
    call js.publish with the same bytes and no guard. (b) Import by batches of 1,000. (c) The time to load an
    aggregate (its last commit, state decoded) with 10 and with 100,000 events behind it. Runs are interleaved. Medians,
    minimum, maximum are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import attrs
import nats
import uvloop
from nats.js import JetStreamContext

from bench.helpers import show_machine
from eventlog import AggregateId, NewCommit, NewEvent, Registry
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog

STREAM, CATEGORY = "BENCH", "bench.stock"
DECLARED = parse(
    {"streams": {STREAM: {"subjects": [f"{CATEGORY}.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "6GiB"}}}
)
REGISTRY = Registry()
TOGETHER = 1000
SYNCS = 300
LOADS = 1000
SLICES = 6
"""Of each measurement."""
FEW, MANY = 10, 100_000

_numbers = itertools.count()


@REGISTRY.event("moved")
@attrs.frozen
class Moved:
    """An event of about the size that the tracker's have."""

    amount: int
    unit: str = "pcs"
    note: str = "delivered by the early van, two boxes were open"


@REGISTRY.state(CATEGORY)
@attrs.frozen
class Stock:
    """The state after it."""

    amount: int
    name: str = "Wheat flour, type 405, 1 kg"
    minimum: int = 12


def proposals(count: int) -> list[Proposal]:
    """Commits to new aggregates."""
    at = datetime.now(UTC)
    return [_proposal(f"{next(_numbers):08x}", at) for _ in range(count)]


def _proposal(name: str, at: datetime) -> Proposal:
    commit = NewCommit(id=f"{name}-0123-4567-89ab-cdef", at=at, events=(NewEvent(Moved(3)),), state=Stock(3))
    return Proposal(aggregate=AggregateId(CATEGORY, name), expected=0, commit=commit)


async def timed(work: Sequence[Awaitable[None]]) -> float:
    """The seconds that tasks take which run at the same time."""
    start = time.perf_counter()
    await asyncio.gather(*work)
    return time.perf_counter() - start


async def bare(js: JetStreamContext, writers: int, each: int) -> float:
    """nats-py as it is, one publish after the other by each writer: seconds."""
    chunks = [[(p.aggregate.subject, REGISTRY.encode(p.commit)) for p in proposals(each)] for _ in range(writers)]

    async def write(messages: Sequence[tuple[str, bytes]]) -> None:
        for subject, body in messages:
            await js.publish(subject, body)

    return await timed([write(chunk) for chunk in chunks])


async def ours(log: JetStreamLog, writers: int, each: int) -> float:
    """The event log, one append after the other by each writer: seconds."""

    async def write(mine: Sequence[Proposal]) -> None:
        for proposal in mine:
            await log.append(proposal)

    return await timed([write(proposals(each)) for _ in range(writers)])


async def imported(log: JetStreamLog, callers: int, batches: int) -> float:
    """Batches of 1,000 by one caller, or by two, of which one encodes while the other's is stored: events per second."""

    async def write(mine: Sequence[Sequence[Proposal]]) -> None:
        for batch in mine:
            await log.append_together(batch)

    work = [write([proposals(TOGETHER) for _ in range(batches // callers)]) for _ in range(callers)]
    return batches // callers * callers * TOGETHER / await timed(work)


async def pile(connection: Connection, name: str, commits: int) -> AggregateId:
    """An aggregate with that many commits of one event; without guards, since they would have to come one by one."""
    aggregate = AggregateId(CATEGORY, name)
    body = REGISTRY.encode(_proposal(name, datetime.now(UTC)).commit)
    for start in range(0, commits, TOGETHER):
        count = min(TOGETHER, commits - start)
        headers = [f"Nats-Batch-Id: {name}-{start}\r\nNats-Batch-Sequence: {number + 1}\r\n" for number in range(count)]
        headers[-1] += "Nats-Batch-Commit: 1\r\n"
        await connection.send_batch([(aggregate.subject, header.encode(), body) for header in headers], 10)
    return aggregate


async def loads(log: JetStreamLog, aggregates: Sequence[AggregateId]) -> list[list[float]]:
    """Seconds that each load takes, sorted, for each aggregate; they take turns."""
    found: list[list[float]] = [[] for _ in aggregates]
    for _ in range(LOADS):
        for aggregate, times in zip(aggregates, found, strict=True):
            start = time.perf_counter()
            commit = await log.last(aggregate)
            assert commit is not None
            assert commit.state == Stock(3)
            times.append(time.perf_counter() - start)
    return [sorted(times) for times in found]


def syncs(directory: Path) -> float:
    """How often a second 600 bytes can be written and synced to this disk, one after the other."""
    with (directory / "yardstick").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(SYNCS):
            file.write(b"x" * 600)
            os.fdatasync(file.fileno())
        return SYNCS / (time.perf_counter() - start)


class Figures:
    """The measurements, by name."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> float:
        """Keep a figure, and give it back."""
        self.values[name].append(value)
        return value

    def lines(self, scale: Callable[[str], tuple[float, str]]) -> Iterator[str]:
        """A line for each name: median, minimum, maximum."""
        for name, values in self.values.items():
            factor, form = scale(name)
            middle, low, high = (format(factor * value, form) for value in (median(values), min(values), max(values)))
            yield f"{name:44} {middle:>9}  ({low} to {high})"


def scale(name: str) -> tuple[float, str]:
    """How a figure is shown."""
    if "ratio" in name:
        return 1, ".3f"
    return (1e6, ",.0f") if "µs" in name else (1, ",.0f")


async def run(figures: Figures, log: JetStreamLog, js: JetStreamContext, options: argparse.Namespace, directory: Path) -> None:
    """All measurements once."""
    figures.add("syncs/s of this disk, one after the other", await asyncio.to_thread(syncs, directory))
    for writers in options.writers:
        each = max(10, int((2000 if writers == 1 else 5000) * options.seconds / SLICES / writers))
        theirs = mine = 0.0
        for _ in range(SLICES):  # in turns, so that what else this machine does meets both
            theirs += await bare(js, writers, each)
            mine += await ours(log, writers, each)
        count = SLICES * writers * each
        figures.add(f"(a) js.publish/s, {writers} writers", count / theirs)
        figures.add(f"(a) log.append/s, {writers} writers", count / mine)
        figures.add(f"(a) ratio, {writers} writers", theirs / mine)
    for callers in (1, 2):
        figures.add(f"(b) events/s, batches of {TOGETHER}, {callers} callers", await imported(log, callers, options.batches))


async def loading(figures: Figures, log: JetStreamLog, few: AggregateId, many: AggregateId) -> None:
    """(c) once."""
    short, long = await loads(log, [few, many])
    for part, index in (("p50", LOADS // 2), ("p99", LOADS * 99 // 100)):
        figures.add(f"(c) load {part}, µs, {FEW} events", short[index])
        figures.add(f"(c) load {part}, µs, {MANY:,} events", long[index])
        figures.add(f"(c) {part} ratio", long[index] / short[index])


async def main(options: argparse.Namespace) -> None:
    """Measure, interleaved, and print."""
    show_machine("nats-py", "uvloop")
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="bench-append-") as directory:
        async with (
            EmbeddedServer(Path(directory)) as server,
            Connection.open(server.url, name="bench") as connection,
        ):
            found = connection.client.connected_server_version
            print(f"nats-server {found.major}.{found.minor}.{found.patch}, one node, sync_interval: always")
            await apply_declarations(connection, DECLARED)
            log = JetStreamLog(connection, STREAM, REGISTRY)
            client = await nats.connect(server.url)
            few, many = await pile(connection, "few", FEW), await pile(connection, "many", MANY)
            await run(Figures(), log, client.jetstream(), options, Path(directory))  # warm up
            for _ in range(options.runs):
                await run(figures, log, client.jetstream(), options, Path(directory))
                await loading(figures, log, few, many)
            await client.close()
    print("\n".join(figures.lines(scale)))
    print(f"appends that shared a batch: {log.group.shared:,}; estimate {log.group.estimate}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="about, of each measurement of (a)")
    parser.add_argument("--batches", type=int, default=20, help="of each measurement of (b)")
    parser.add_argument("--writers", type=lambda text: [int(part) for part in text.split(",")], default=[1, 64])
    uvloop.run(main(parser.parse_args()))
