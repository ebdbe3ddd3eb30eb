"""Reading a stream from its beginning: `follow` (nothing decoded), and nats-py's ordered consumer with a callback.

python scripts/bench/log/replay_bare.py [--messages 300000] [--bytes 600] [--runs 5]

The messages have the headers that atomic batches and message ids leave on them, as the ones of an event log have.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import nats
import psutil
import uvloop
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig

from eventlog import Registry
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.follower import follow
from eventlog.jetstream.transport.connection import Connection

STREAM = "BENCH"
SUBJECTS = 500
BATCH = 1000
DECLARED = parse({"streams": {STREAM: {"subjects": ["bench.thing.*"], "allow_atomic": True, "max_bytes": "6GiB"}}})


async def fill(connection: Connection, messages: int, size: int) -> None:
    """Store messages in batches of a thousand, as group commit does."""
    body = b"x" * size
    for batch in range(messages // BATCH):
        lines = [
            b"Nats-Msg-Id: %032d\r\nNats-Batch-Id: %d\r\nNats-Batch-Sequence: %d\r\n" % (batch * BATCH + at, batch, at + 1)
            for at in range(BATCH)
        ]
        lines[-1] += b"Nats-Batch-Commit: 1\r\n"
        await connection.send_batch([(f"bench.thing.{at % SUBJECTS}", line, body) for at, line in enumerate(lines)], 10)


async def followed(connection: Connection, messages: int) -> tuple[float, float]:
    """Messages per second, and the mean length of the lists they came in."""
    start, lists, last = time.perf_counter(), 0, 0
    async for commits in follow(connection, STREAM, Registry(), after=0, until=messages):
        lists += 1
        last = commits[-1].sequence
    assert last == messages
    return messages / (time.perf_counter() - start), messages / lists


async def ordered_consumer(url: str, messages: int) -> float:
    """Messages per second of nats-py's own, fastest way to read in order."""
    client = await nats.connect(url)
    count, done = 0, asyncio.Event()

    async def take(_: Msg) -> None:
        nonlocal count
        count += 1
        if count == messages:
            done.set()

    start = time.perf_counter()
    await client.jetstream().subscribe("bench.thing.*", stream=STREAM, ordered_consumer=True, cb=take, config=ConsumerConfig())
    await done.wait()
    rate = messages / (time.perf_counter() - start)
    await client.close()
    return rate


async def main() -> None:
    """Fill a stream, read it in both ways, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=300_000, help="a multiple of 1,000")
    parser.add_argument("--bytes", type=int, default=600, help="of each message's body")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, nats-py {version('nats-py')}, uvloop"
    )
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        async with EmbeddedServer(Path(directory)) as server, Connection.open(server.url, name="bench") as connection:
            await apply(connection, DECLARED)
            await fill(connection, options.messages, options.bytes)
            lists, growth = 0.0, 0
            for _ in range(options.runs):
                before = psutil.Process().memory_info().rss
                rate, lists = await followed(connection, options.messages)
                growth = max(growth, psutil.Process().memory_info().rss - before)
                ours.append(rate)
                rate = await ordered_consumer(server.url, options.messages)
                theirs.append(rate)
    for name, rates in (("follow", ours), ("ordered consumer, callback", theirs)):
        print(f"{name:28} {median(rates):10,.0f} messages/s ({min(rates):,.0f} to {max(rates):,.0f})")
    print(f"ratio {median(ours) / median(theirs):.2f}, mean list {lists:.0f} messages, memory grew by {growth / 1e6:.0f} MB")


if __name__ == "__main__":
    uvloop.run(main())
