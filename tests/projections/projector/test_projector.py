"""The projector on a real nats-server: killed, cut off, and given a stream that is not what it was."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from eventlog import IncarnationChanged, LogTruncated, SequenceGap
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from projections.errors import ProjectionError, ProjectorStopped
from projections.keys import find_uses
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.stores.databases import reader_at, store_at
from projections.stores.sqlite import SQLiteStore
from tests.support.log.nats import plain_client
from tests.support.readside.ledger import MODEL, Book, Booked, Opened
from tests.support.readside.projecting import assert_equals_a_fold, ledger_log, running, start_projector
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(path) as store:
        await Migrations(store, MODEL).up()
        yield store


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
async def test_killed_in_the_middle_of_batches_it_ends_where_a_clean_fold_ends(
    nats_url: str, database_url: str, kills: int, seed: int
) -> None:
    """F2: kill -9, at random moments, while events arrive. Each time another process continues."""
    chance = random.Random(seed)
    async with ledger_log(nats_url) as log:
        book, killing = Book(log), True

        async def write() -> None:
            part = 0
            while killing:
                await book.append_randomly(100, accounts=40, seed=part)
                await book.append("keyed", Booked(1) if part else Opened("someone"), key=f"key-{part}")
                part += 1

        writing = asyncio.create_task(write())
        before = 0
        for _ in range(kills):
            process = await asyncio.to_thread(start_projector, nats_url, database_url, chance.choice((7, 100, 1000)))
            try:
                await wait_until(partial(is_past, database_url, before), timeout=30, every=0.05)
                await asyncio.sleep(chance.uniform(0, 0.1))
            finally:
                process.kill()
                assert await asyncio.to_thread(process.wait) == -9
            before = await position(database_url)
        killing = False
        await writing
        async with store_at(database_url) as store:
            await Projector(log, store, MODEL).run(until=(await log.head()).last)
            await assert_equals_a_fold(log, store)
            record = (await find_uses(store, ["key-0"])).get("key-0")
            assert record is not None
            assert record.subject == "ledger.account.keyed"


async def position(database: str) -> int:
    """The lowest checkpoint in a database that another process writes."""
    async with reader_at(database) as reader:
        return min((checkpoint.sequence for checkpoint in (await reader.checkpoints()).values()), default=0)


async def is_past(database: str, sequence: int) -> bool:
    try:
        return await position(database) > sequence
    except ProjectionError:  # not made yet, or its tables are not
        return False


def is_at(projector: Projector, sequence: int) -> bool:
    return projector.position >= sequence


async def test_a_broker_that_is_killed_during_a_replay_costs_only_time(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    """F18: kill -9 at a quarter and at a half. No commit is missing, and none is applied twice."""
    commits = 6_000
    async with ledger_log(nats_server.url) as log, opened(tmp_path / "read.db") as store:
        await Book(log).append_randomly(commits, accounts=500, seed=1, batch=500)
        projector = Projector(log, store, MODEL, batch=50)
        async with running(projector):
            for quarter in (1, 2):
                await wait_until(partial(is_at, projector, commits * quarter // 4), 30)
                assert projector.position < commits
                await nats_server.kill()
                await nats_server.start()
            await wait_until(partial(is_at, projector, commits), 30)
        await assert_equals_a_fold(log, store)


async def test_a_broker_that_is_away_is_said_and_waited_for(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    """The figures are unknown until it is back. Events that are appended afterwards are applied by themselves."""
    async with ledger_log(nats_server.url) as log, opened(tmp_path / "read.db") as store:
        book = Book(log)
        await book.append("a", Opened("ann"))
        projector = Projector(log, store, MODEL)
        async with running(projector):
            await projector.wait_for(1, 60)
            await nats_server.kill()
            await wait_until(lambda: projector.status().state is ProjectorState.WAITING, timeout=60)
            assert projector.status().lag_events is None
            assert projector.status().error
            await nats_server.start()
            await wait_until(lambda: projector.status().state is ProjectorState.LIVE, timeout=60)
            await book.append("a", Booked(1))
            await projector.wait_for(2, 60)
        await assert_equals_a_fold(log, store)


async def test_a_stream_that_is_wiped_under_a_running_projector_stops_it(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    """F19: the server is stopped, its data is deleted, and the stream is recreated longer than before."""
    async with ledger_log(nats_server.url) as log, opened(tmp_path / "read.db") as store:
        await Book(log).append_randomly(200, accounts=20, seed=1)
        projector = Projector(log, store, MODEL)
        async with running(projector) as task:
            await projector.wait_for(200, 60)
            rows = await store.fetch("SELECT * FROM accounts ORDER BY id")
            await nats_server.kill()
            await asyncio.to_thread(shutil.rmtree, nats_server.data_dir / "jetstream")
            await nats_server.start()
            async with ledger_log(nats_server.url) as again:
                await Book(again).append_randomly(300, accounts=20, seed=2)
                with pytest.raises(ProjectorStopped, match="recreated"):
                    await asyncio.wait_for(asyncio.shield(task), 60)
        assert isinstance(getattr(task.exception(), "__cause__", None), IncarnationChanged)
        assert projector.status().state is ProjectorState.STOPPED
        assert await store.fetch("SELECT * FROM accounts ORDER BY id") == rows
        with pytest.raises(ProjectorStopped, match="recreated"):
            await Projector(log, store, MODEL).run()


async def test_a_stream_that_is_restored_from_an_older_copy_stops_it(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    """The same incarnation, shorter than the checkpoint. The error differs from the one for a new stream."""
    data, copy = nats_server.data_dir / "jetstream", tmp_path / "copy"
    async with opened(tmp_path / "read.db") as store:
        async with ledger_log(nats_server.url) as log:
            book = Book(log)
            await book.append_randomly(100, accounts=20, seed=1)
            await nats_server.kill()
            await asyncio.to_thread(shutil.copytree, data, copy)
            await nats_server.start()
        async with ledger_log(nats_server.url) as log:
            await book_of(log, 50)
            await Projector(log, store, MODEL).run(until=150)
        await nats_server.kill()
        await asyncio.to_thread(shutil.rmtree, data)
        await asyncio.to_thread(shutil.move, copy, data)
        await nats_server.start()
        async with ledger_log(nats_server.url) as log:
            with pytest.raises(ProjectorStopped, match="at sequence 150, ahead of the log, which ends at 100") as caught:
                await Projector(log, store, MODEL).run()
            assert isinstance(caught.value.__cause__, LogTruncated)


async def book_of(log: JetStreamLog, commits: int) -> None:
    """Append commits to new accounts."""
    book = Book(log)
    for number in range(commits):
        await book.append(f"later-{number}", Opened(f"later {number}"))


async def test_a_message_that_was_deleted_stops_it_before_it(nats_url: str, tmp_path: Path) -> None:
    """Within one batch, with the sequence in the text; the position is right before the hole."""
    async with ledger_log(nats_url) as log, opened(tmp_path / "read.db") as store, plain_client(nats_url) as client:
        await Book(log).append_randomly(300, accounts=20, seed=1)
        assert await client.jetstream().delete_msg(MODEL.stream, 123)
        projector = Projector(log, store, MODEL)
        async with asyncio.timeout(60):
            with pytest.raises(ProjectorStopped, match="expected sequence 123, found 124") as caught:
                await projector.run()
        assert isinstance(caught.value.__cause__, SequenceGap)
        assert projector.position == 122


async def test_a_stream_whose_beginning_was_purged_stops_who_needs_it(nats_url: str, tmp_path: Path) -> None:
    async with ledger_log(nats_url) as log, opened(tmp_path / "read.db") as store, plain_client(nats_url) as client:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        await client.jetstream().purge_stream(MODEL.stream, seq=51)
        with pytest.raises(ProjectorStopped, match="needs sequence 1, but the log begins at 51") as caught:
            await Projector(log, store, MODEL).run()
        assert isinstance(caught.value.__cause__, LogTruncated)


async def test_a_message_that_is_no_commit_is_parked(nats_url: str, tmp_path: Path) -> None:
    """F15: sequence, subject and reason are reported. Earlier and later commits are applied."""
    async with ledger_log(nats_url) as log, opened(tmp_path / "read.db") as store, plain_client(nats_url) as client:
        await Book(log).append_randomly(40, accounts=20, seed=1)
        await client.jetstream().publish("ledger.account.bad", b"not JSON")
        await Book(log).append("later", Opened("later"))
        await Projector(log, store, MODEL).run(until=42)
        parked = await store.parked()
        assert {one.projection for one in parked} == {"accounts", "owners", "command_keys"}
        assert {(one.subject, one.sequence) for one in parked} == {("ledger.account.bad", 41)}
        assert "sequence 41 was published without a guard" in parked[0].error
        assert await store.fetch("SELECT owner FROM accounts WHERE id = 'later'") == [{"owner": "later"}]
