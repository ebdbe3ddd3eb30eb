"""On a real stream: files that were exchanged while the server was down, and records that it cannot read."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from eventlog import LogDiverged, SequenceGap
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from projections.errors import ProjectorStopped
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import dump, verify
from projections.stores.sqlite import SQLiteStore
from tests.support.log.damage import flip
from tests.support.readside.ledger import MODEL, Book, Booked, Opened
from tests.support.readside.projecting import STREAM, ledger_log

pytestmark = pytest.mark.real


async def test_an_older_backup_that_has_grown_past_the_tables_stops_a_running_projector_at_the_reconnect(
    nats_server: EmbeddedServer, tmp_path: Path
) -> None:
    """The projector waits for the server; the commit that it read last is another one when it is back."""
    data, copy = nats_server.data_dir / "jetstream", tmp_path / "copy"
    async with ledger_log(nats_server.url) as log:
        await Book(log).append_randomly(30, accounts=5, seed=1)
    await nats_server.stop()
    await asyncio.to_thread(shutil.copytree, data, copy)
    await nats_server.start()
    async with SQLiteStore(tmp_path / "read.db") as store, ledger_log(nats_server.url) as log:
        await Migrations(store, MODEL).up()
        for number in range(8):
            await Book(log).append(f"more-{number}", Opened("ann"))
        projector = Projector(log, store, MODEL)
        running = asyncio.create_task(projector.run())
        await projector.wait_for(38, 20)
        before = await dump(store, MODEL)
        await nats_server.stop()
        await asyncio.to_thread(shutil.rmtree, data)
        await asyncio.to_thread(shutil.copytree, copy, data)
        await nats_server.start()
        async with ledger_log(nats_server.url) as other:
            for number in range(20):
                await Book(other).append(f"other-{number}", Opened("eve"))
        async with asyncio.timeout(20):
            with pytest.raises(ProjectorStopped, match=r"sequence 38 is another commit now|ends at sequence"):
                await running
        assert await dump(store, MODEL) == before
        with pytest.raises(ProjectorStopped, match="sequence 38 is another commit now") as raised:
            await Projector(log, store, MODEL).run()
        assert isinstance(raised.value.__cause__, LogDiverged)
        assert await dump(store, MODEL) == before


@pytest.mark.parametrize("place", ["last", "middle"])
async def test_a_record_that_cannot_be_read_ends_a_replay_and_a_verification(
    nats_server: EmbeddedServer, tmp_path: Path, place: str
) -> None:
    """Neither hangs; both name the sequence."""
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, MODEL).up()
        async with ledger_log(nats_server.url) as log:
            book = Book(log)
            await book.append("a", Opened("ann"))
            await book.append("a", Booked(7777777))
            for number in range(10 if place == "middle" else 0):
                await book.append(f"b{number}", Opened("bob"))
            end = (await log.head()).last
            await Projector(log, store, MODEL).run(until=end)
        await nats_server.stop()
        flip(nats_server.data_dir, STREAM.name, b"7777777")
        await nats_server.start()
        async with ledger_log(nats_server.url) as log:
            for work in (verify(store, log, MODEL), fresh(log, tmp_path, end)):
                async with asyncio.timeout(20):
                    with pytest.raises(ProjectorStopped) as raised:
                        await work
                assert isinstance(raised.value.__cause__, SequenceGap)
                assert raised.value.__cause__.expected == 2


async def fresh(log: JetStreamLog, tmp_path: Path, until: int) -> None:
    async with SQLiteStore(tmp_path / "fresh.db") as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=until)
