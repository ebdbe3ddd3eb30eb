"""Writers that race for one aggregate on three nats-servers, each stream on all of them: of each round exactly one is accepted.

PYTHONPATH=.:scripts python scripts/bench/log/race.py [--rounds 1000] [--writers 8]

The writers are on connections to different servers, and all propose the same place in the aggregate at the same moment. In the
end the aggregate's history is read back: the accepted commits, in that order, and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from bench.helpers.measuring import show_machine
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from tests.support.cluster.servers import Cluster
from tests.support.log.conformance import account
from tests.support.log.event_stream import STREAM, event_stream
from tests.support.log.racing import race


async def main(rounds: int, writers: int, directory: Path) -> None:
    """Race, read back, print."""
    show_machine()
    async with Cluster.running(directory) as cluster:
        connections = [Connection.open(node.url, name="race") for node in cluster.nodes]
        async with connections[0] as one, connections[1] as two, connections[2] as three:
            first = await event_stream(one, replicas=3)
            logs = [JetStreamLog((one, two, three)[number % 3], STREAM, first.registry) for number in range(writers)]
            began = time.monotonic()
            accepted = await race(logs, rounds)
            seconds = time.monotonic() - began
            stored = [commit.id async for commit in first.history(account("a"))]
    print(f"{rounds:,} rounds of {writers} writers: {len(accepted):,} accepted, {len(stored):,} stored, {seconds:.0f} s")
    if len(accepted) != rounds or stored != accepted:
        raise SystemExit("what is stored is NOT one of each round")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="race-") as temporary:
        asyncio.run(main(given.rounds, given.writers, Path(temporary)))
