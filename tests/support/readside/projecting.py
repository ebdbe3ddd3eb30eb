"""The example's projector on a real stream: in this process, and as a separate process that can be killed.

python -m tests.support.readside.projecting URL DATABASE BATCH WORKERS
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from eventlog.admin.declarations import Declarations, Stream
from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import Mark, Reader
from projections.stores.databases import store_at
from tests.support import ROOT
from tests.support.readside.ledger import CATEGORY, MODEL, REGISTRY

STREAM = Stream(
    MODEL.stream,
    {"subjects": [f"{CATEGORY}.*"], "storage": "file", "allow_direct": True, "allow_atomic": True},
    incarnation=True,
)


@asynccontextmanager
async def ledger_log(url: str) -> AsyncIterator[JetStreamLog]:
    """The example's stream, made if it is missing."""
    async with Connection.open(url, name="test") as connection:
        await apply_declarations(connection, Declarations((STREAM,)))
        yield JetStreamLog(connection, MODEL.stream, REGISTRY)


@asynccontextmanager
async def running(projector: Projector) -> AsyncIterator[asyncio.Task[None]]:
    """A projector that runs, as its task."""
    task = asyncio.create_task(projector.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


def start_projector(url: str, database: str, batch: int) -> subprocess.Popen[bytes]:
    """Start a process that projects for ever."""
    command = [sys.executable, "-m", "tests.support.readside.projecting", url, database, str(batch)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


async def assert_equals_a_fold(log: JetStreamLog, store: Reader) -> None:
    """Check I3: rows, keys and counts equal a clean fold up to the end of the log, bit for bit."""
    head = await log.head()
    assert {checkpoint.sequence for checkpoint in (await store.checkpoints()).values()} == {head.last}
    async with replayed_copy(log, MODEL, until=head.last) as fresh:
        assert await compare(store, fresh, MODEL) is None
        ours = await dump(store, MODEL)
        assert ours == await dump(fresh, MODEL)
        assert set(ours.applied.values()) == {head.last}


def proven(marks: Sequence[Mark], sequence: int, digest: str | None) -> Sequence[Mark]:
    """Marks, and one more for the running digest at a sequence, if it is known."""
    return marks if digest is None else [*marks, Mark(MODEL.stream, sequence, digest, "")]


async def project(url: str, database: str, batch: int) -> None:
    """Bring a database up to date and keep it so."""
    async with Connection.open(url, name="projector") as connection, store_at(database) as store:
        await Migrations(store, MODEL).up()
        await Projector(JetStreamLog(connection, MODEL.stream, REGISTRY), store, MODEL, batch=batch).run()


if __name__ == "__main__":
    asyncio.run(project(sys.argv[1], sys.argv[2], int(sys.argv[3])))
