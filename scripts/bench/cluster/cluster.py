"""kill -9 of the parts of a cluster under load, repeatedly: the waits of clients, with no loss and no repetition.

    PYTHONPATH=.:scripts python scripts/bench/cluster/cluster.py [--kills 60] [--seed N] [--writers 6] [--readers 2]
        [--repositories 60]

`gctd up --cluster` with its three nats-servers, Postgres, two of each service. Clients book movements, read them, and register
repositories, for which workers are needed; they ask the other server of a kind if one does not answer. After each kill the
part is waited for, and each client's next answer. In the end: every acknowledged movement once in the log, stock = sum of
movements, every repository looked at, tables = a clean fold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import signal
import time
from statistics import median

from tests.support.cluster.kills import KINDS, Kill, kill
from tests.support.cluster.load import Load, loaded
from tests.support.cluster.system import cluster_directory, clustered


def show(load: Load, kills: list[Kill], seconds: float) -> None:
    """Print what clients waited, by kind of kill: median and most."""
    writes = [done.ended - done.began for done in load.done if done.kind == "write"]
    print(f"{len(load.accepted):,} movements accepted in {seconds:,.0f} s, {len(load.registered)} repositories")
    print(f"a movement took {median(writes) * 1000:.1f} ms (median), with all parts there and without")
    print(f"{'killed':14} {'times':>5}  {'ready again':>16}  {'longest write':>16}  {'longest read':>16}")
    for kind in dict.fromkeys(each.kind for each in kills):
        of = [each for each in kills if each.kind == kind]
        columns = ([each.back for each in of], [each.write for each in of], [each.read for each in of])
        print(f"{kind:14} {len(of):5}  " + "  ".join(f"{median(column):6.2f} to {max(column):5.2f} s" for column in columns))
    print(f"longer than 10 s: {sum(max(each.write, each.read) > 10 for each in kills)} of {len(kills)} kills")


async def main(kills: int, seed: int, writers: int, readers: int, repositories: int) -> None:
    """Start, kill, audit, print."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}, seed {seed}")
    with cluster_directory() as directory:
        async with clustered(directory, "--allow-local", GCTD_PRESENCE_TTL="5s") as cluster:
            done: list[Kill] = []
            began = time.monotonic()
            async with loaded(cluster, directory, writers=writers, readers=readers, repositories=repositories) as load:
                while len(done) < kills:
                    kinds = list(KINDS)
                    chance.shuffle(kinds)
                    for kind in kinds[: kills - len(done)]:
                        done.append(await kill(load, kind))
                        print(done[-1], flush=True)
                await load.end()
                show(load, done, time.monotonic() - began)
                await load.until_looked_at()
                wrong = await load.audit()
            await cluster.running.end(signal.SIGINT, within=120)
    print("\n".join(wrong) or "nothing lost, nothing twice, the tables equal a clean fold")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - as above
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--repositories", type=int, default=60)
    given = parser.parse_args()
    asyncio.run(main(given.kills, given.seed, given.writers, given.readers, given.repositories))
