"""kill -9 of the projector at random moments: afterwards the tables equal a clean fold, none missing, none twice.

PYTHONPATH=.:scripts python scripts/bench/faults/kills.py [--kills 200] [--events 100000] [--seed N] [--database URL]

The events come in while a separate process brings the tables up to date and is killed, repeatedly. Compared in the
end: every row, every idempotency key, and the number of applied commits of each projection.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from eventlog.embedded.nats import EmbeddedServer
from projections.errors import ProjectionError
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.stores.databases import reader_at, store_at
from tests.support.readside.ledger import MODEL, Book
from tests.support.readside.projecting import ledger_log, start_projector

ACCOUNTS = 400
BATCHES = (7, 100, 1000)
PATIENCE = 300.0


async def position(database: str) -> int:
    """The lowest checkpoint, 0 if there is none yet."""
    with suppress(ProjectionError):
        async with reader_at(database) as reader:
            checkpoints = await reader.checkpoints()
            return min((checkpoints[p.name].sequence if p.name in checkpoints else 0 for p in MODEL.projections), default=0)
    return 0


async def moved(database: str, beyond: int) -> None:
    """Wait until the checkpoints are beyond a sequence."""
    end = time.monotonic() + PATIENCE
    while await position(database) <= beyond:
        if time.monotonic() > end:
            raise TimeoutError(f"the projector does not get beyond sequence {beyond}")
        await asyncio.sleep(0.01)


async def kill_one(url: str, database: str, chance: random.Random, last: int) -> int:
    """Start a projector, let it get somewhere, kill it at a random moment; gives how far it was."""
    process = await asyncio.to_thread(start_projector, url, database, chance.choice(BATCHES))
    try:
        await moved(database, min(await position(database), last - 1))
        await asyncio.sleep(chance.expovariate(20))
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
    return await position(database)


async def main(kills: int, events: int, seed: int, database: str | None) -> None:
    """Write, kill, compare, print."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory(prefix="kills-") as directory:
        database = database or f"sqlite:{directory}/read.db"
        async with EmbeddedServer(Path(directory) / "nats") as server, ledger_log(server.url) as log:
            book, gained = Book(log), []
            for number in range(kills):
                await book.append_randomly(events // kills, accounts=ACCOUNTS, seed=seed + number)
                before, last = await position(database), (await log.head()).last
                gained.append(await kill_one(server.url, database, chance, last) - before)
            head = await log.head()
            async with store_at(database) as store:
                await Migrations(store, MODEL).up()
                left = head.last - await position(database)
                await Projector(log, store, MODEL).run(until=head.last)
                async with replayed_copy(log, MODEL, until=head.last) as fresh:
                    difference = await compare(store, fresh, MODEL)
                    equal = difference is None and await dump(store, MODEL) == await dump(fresh, MODEL)
    print(f"{kills} kills, {head.last:,} events, seed {seed}: a process gained {median(gained):,.0f} events before it was killed")
    print(f"{left:,} were left for the last one; the tables {'equal a clean fold' if equal else f'DIFFER: {difference}'}")
    if not equal:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - as above
    parser.add_argument("--database", help="an empty one, as postgresql://...; by default a SQLite file")
    given = parser.parse_args()
    asyncio.run(main(given.kills, given.events, given.seed, given.database))
