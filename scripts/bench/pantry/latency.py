"""Latency of booked movements at low and high load, next to the bare parts in the same run.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/pantry/latency.py [--runs 3] [--seconds 3] [--products 2000]
        [--connections 1,16]

The system is one `pantry serve` in a second process, on an embedded nats-server that syncs every write. Each answer comes when
the movement is in the log. The tables get it at the same time. The bare parts are nats-py alone, on the same nats-server: a
durable publish, and the message back from a consumer. Both alternate. At the end the processor time of the idle system is
measured.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import uvloop
from nats import connect
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from bench.helpers import Load, movements, pantry, prepare, show_machine
from eventlog.embedded.nats import EmbeddedServer

STREAM, SUBJECT = "PARTS", "parts"
BODY = b"x" * 600
"""About the size of the commit of a movement."""
SETTLED, IDLE = 5.0, 10.0
"""Seconds between the load and the measurement of the idle system, and seconds for which it is measured."""


async def parts(nats: EmbeddedServer, *, connections: int, seconds: float) -> Load:
    """Publish durably and wait for the message from a consumer, in that many loops."""
    client = await connect(nats.url)
    async with client:
        js = client.jetstream()
        await js.add_stream(StreamConfig(name=STREAM, subjects=[SUBJECT]))
        waiting: dict[bytes, asyncio.Future[None]] = {}

        async def delivered(message: Msg) -> None:
            waiting.pop(message.data[:16]).set_result(None)

        try:
            await js.subscribe(SUBJECT, cb=delivered, ordered_consumer=True)
            result, until = Load(seconds), time.perf_counter() + seconds

            async def work(loop: int) -> None:
                number = 0
                while (began := time.perf_counter()) < until:
                    key, number = b"%5d %10d" % (loop, number), number + 1
                    waiting[key] = back = asyncio.get_running_loop().create_future()
                    await js.publish(SUBJECT, key + BODY)
                    await back
                    result.latencies.append(time.perf_counter() - began)

            await asyncio.gather(*map(work, range(connections)))
        finally:
            await js.delete_stream(STREAM)
    return result


def figures(runs: Sequence[Load]) -> tuple[float, float, float]:
    """The medians of rate, p50 and p99."""
    return (
        statistics.median(run.rate for run in runs),
        statistics.median(run.percentile(0.5) for run in runs),
        statistics.median(run.percentile(0.99) for run in runs),
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--connections", default="1,2,4,8,16,64")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    show_machine()
    print(f"{'':>14}{'system':>12}{'p50':>8}{'p99':>8}{'parts':>14}{'p50':>8}{'p99':>8}{'ratio of p50':>15}{'of p99':>8}")
    with tempfile.TemporaryDirectory(prefix="bench-latency-") as folder:
        directory = Path(folder)
        async with EmbeddedServer(directory / "nats") as nats, pantry(nats, directory) as server:
            await prepare(server, options.products)
            for connections in map(int, options.connections.split(",")):
                whole, bare = list[Load](), list[Load]()
                for _ in range(options.runs):
                    bare.append(await parts(nats, connections=connections, seconds=options.seconds))
                    whole.append(
                        await movements(server, products=options.products, connections=connections, seconds=options.seconds)
                    )
                (rate, p50, p99), (bare_rate, bare_p50, bare_p99) = figures(whole), figures(bare)
                rates = [run.rate for run in whole]
                print(
                    f"{connections:>3} connections{rate:>10,.0f}/s{p50:>8.2f}{p99:>8.2f}{bare_rate:>12,.0f}/s{bare_p50:>8.2f}"
                    f"{bare_p99:>8.2f}{p50 / bare_p50:>15.1f}{p99 / bare_p99:>8.1f}   ({min(rates):,.0f} to {max(rates):,.0f}/s)",
                    flush=True,
                )
            processes = [server.process, *(child for child in psutil.Process().children() if child != server.process)]
            await asyncio.sleep(SETTLED)
            spent = -sum(sum(process.cpu_times()[:2]) for process in processes)
            await asyncio.sleep(IDLE)
            spent += sum(sum(process.cpu_times()[:2]) for process in processes)
            print(f"idle: {spent / IDLE:.1%} of a core in {len(processes)} processes")


if __name__ == "__main__":
    uvloop.run(main())
