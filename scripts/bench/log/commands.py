"""Commands on one busy aggregate: events per second, durable, with 1 and with 64 writers, without idempotency keys and with them.

Plain publishes in sequence are measured in the same run.

python scripts/bench/log/commands.py [--seconds 3] [--runs 5]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import nats

from eventlog import Context
from eventlog.admin.declarations import Declarations, Stream
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.commands.outcomes import KeyUse
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from tests.support.log.counter import CATEGORY, COUNTER, REGISTRY, Add

SUBJECT = "BENCH"


async def publishes(url: str, seconds: float) -> float:
    """Bare nats-py, one publish after another, the same number of bytes: messages per second."""
    client = await nats.connect(url)
    js = client.jetstream()
    body, count, end = b"x" * 250, 0, time.perf_counter() + seconds
    start = time.perf_counter()
    while time.perf_counter() < end:
        await js.publish(f"{CATEGORY}.bare", body)
        count += 1
    rate = count / (time.perf_counter() - start)
    await client.close()
    return rate


class NoKeys:
    """Finds no key. So the cost of a table is not measured."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse]:  # noqa: ARG002 - as Keys
        """Find nothing."""
        return {}


async def commands(log: JetStreamLog, aggregate: str, writers: int, seconds: float, *, keyed: bool) -> tuple[float, int]:
    """Writers that each send a command and wait for its answer: events per second, and commits written."""
    executor = Commands(log, keys=NoKeys())
    keys = map(f"{aggregate}-{{}}".format, itertools.count())
    end, start = time.perf_counter() + seconds, time.perf_counter()

    async def write() -> int:
        count = 0
        while time.perf_counter() < end:
            context = Context(key=next(keys), fingerprint="bench") if keyed else Context()
            await executor.execute(COUNTER, aggregate, Add(amount=1), context)
            count += 1
        return count

    counts = await asyncio.gather(*(write() for _ in range(writers)))
    rate = sum(counts) / (time.perf_counter() - start)
    commits = [commit async for commit in log.history(COUNTER.aggregate(aggregate))]
    assert sum(len(commit.body.events) for commit in commits) == sum(counts)
    assert commits[-1].state.total == sum(counts)
    return rate, len(commits)


async def main() -> None:
    """Run interleaved, print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    figures = defaultdict[str, list[float]](list)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            EmbeddedServer(Path(directory)) as server,
            Connection.open(server.url, name="bench") as connection,
        ):
            config = {"subjects": [f"{CATEGORY}.*"], "storage": "file", "allow_direct": True, "allow_atomic": True}
            await apply_declarations(connection, Declarations((Stream(SUBJECT, config, incarnation=True),), ()))
            log = JetStreamLog(connection, SUBJECT, REGISTRY)
            for run in range(options.runs):
                figures["bare publish, 1 writer"].append(await publishes(server.url, options.seconds))
                for writers, keyed in itertools.product((1, 4, 16, 64), (False, True)):
                    aggregate = f"run-{run}-{writers}-{keyed}"
                    rate, commits = await commands(log, aggregate, writers, options.seconds, keyed=keyed)
                    name = f"commands{' with keys' if keyed else ''}, {writers} writer{'s' if writers > 1 else ''}"
                    figures[name].append(rate)
                    print(f"run {run + 1}: {name}: {rate:,.0f} events/s in {commits} commits")
    for name, values in figures.items():
        print(f"{name:32} {median(values):>10,.0f}/s  ({min(values):,.0f} to {max(values):,.0f})")


if __name__ == "__main__":
    asyncio.run(main())
