"""One event that cannot be applied, among 100,000: how long the others take to be seen, before it and behind it.

PYTHONPATH=.:scripts python scripts/bench/readside/poison.py [--events 100000] [--rate 1000] [--together 20]
    [--store sqlite|postgres]

Events come in at a steady rate, on a real stream, while a projector brings the tables up to date; the one in the middle fails
in its handler (`handler`), or is refused by the database (`row`). Printed is the time from the acknowledgement of a batch of
others until its rows can be read. In the end the handler is repaired, the parked aggregate is unparked, and the tables are
compared with a clean fold.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import structlog
import uvloop

from bench.helpers.measuring import show_machine
from bench.readside.rebuild import postgres
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import Store
from projections.stores.databases import store_at
from tests.support.readside.ledger import FIXED, MODEL, Book, Booked, Opened
from tests.support.readside.projecting import ledger_log

ACCOUNTS = 400
WRONG = {"handler": Booked(1, "poison"), "row": Booked(-1_000_000)}
BAD = "bad"


@asynccontextmanager
async def database(kind: str, directory: Path) -> AsyncIterator[str]:
    """The address of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:{directory / 'read.db'}"
        return
    async with postgres() as url:
        yield url


async def write(log: JetStreamLog, projector: Projector, events: int, rate: float, together: int, wrong: Booked) -> list[float]:
    """Append at a rate, the wrong one in the middle: seconds from each acknowledgement until the batch can be read."""
    book, batches, start = Book(log), events // together, time.perf_counter()
    seen: list[asyncio.Task[float]] = []

    async def visible(sequence: int, acknowledged: float) -> float:
        await projector.wait_for(sequence, 60)
        return time.perf_counter() - acknowledged

    await book.append(BAD, Opened("eve"), Booked(5))
    for number in range(batches):
        await asyncio.sleep(max(0.0, start + number * together / rate - time.perf_counter()))
        if number == batches // 2:
            await book.append(BAD, wrong)
            await book.append(BAD, Booked(1))
        await book.append_randomly(together, accounts=ACCOUNTS, seed=number, batch=together)
        seen.append(asyncio.create_task(visible(max(book.sequences.values()), time.perf_counter())))
    print(f"{events / (time.perf_counter() - start):,.0f} events/s came in; ", end="")
    return await asyncio.gather(*seen)


async def measure(kind: str, wrong: str, events: int, rate: float, together: int) -> None:
    """One run."""
    with tempfile.TemporaryDirectory(prefix="poison-") as directory:
        async with (
            database(kind, Path(directory)) as url,
            EmbeddedServer(Path(directory) / "nats") as server,
            ledger_log(server.url) as log,
            store_at(url) as store,
        ):
            await Migrations(store, MODEL).up()
            projector = Projector(log, store, MODEL)
            running = asyncio.create_task(projector.run())
            times = await write(log, projector, events, rate, together, WRONG[wrong])
            running.cancel()
            await asyncio.wait({running})
            print(f"{kind}, {wrong}: {told(times)}; parked {len(projector.parked)}", end="", flush=True)
            print(f"; {await mended(log, store)}" if wrong == "handler" else "")


def told(times: Sequence[float]) -> str:
    """The times of the batches before the wrong event and behind it."""
    half = len(times) // 2
    return ", ".join(
        f"{name} median {median(some) * 1000:.0f} ms, at most {max(some) * 1000:.0f} ms"
        for name, some in (("before", times[:half]), ("behind", times[half:]))
    )


async def mended(log: JetStreamLog, store: Store) -> str:
    """Take up what is parked, with a handler that can, and compare."""
    last = (await log.head()).last
    projector = Projector(log, store, FIXED)
    await projector.run(until=last)
    done = await projector.unpark()
    async with replayed_copy(log, FIXED, until=last) as fresh:
        equal = await compare(store, fresh, FIXED) is None and await dump(store, FIXED) == await dump(fresh, FIXED)
    return f"mended, {len(done.freed)} taken up: {'equal to a clean fold' if equal else 'DIFFERS from a clean fold'}"


async def main(events: int, rate: float, together: int, stores: Sequence[str]) -> None:
    """All runs."""
    show_machine()
    print(f"{events:,} events at {rate:,.0f}/s, {together} to a batch", flush=True)
    for kind in stores:
        for wrong in WRONG:
            await measure(kind, wrong, events, rate, together)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--together", type=int, default=20)
    parser.add_argument("--store", choices=["sqlite", "postgres"])
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    uvloop.run(main(given.events, given.rate, given.together, [given.store] if given.store else ["sqlite", "postgres"]))
