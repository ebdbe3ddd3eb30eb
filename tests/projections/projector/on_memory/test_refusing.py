"""The projector stops on a log that is not whole, and on a database that another projector fills."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eventlog import IncarnationChanged, LogTruncated
from projections.errors import CheckpointMoved, ProjectorStopped
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.rebuild.verify import dump
from projections.store import Store
from projections.stores.sqlite import SQLiteStore
from tests.projections.projector.on_memory.faulty import Faults, FaultyLog, equals_a_fold, stopped
from tests.support.readside import ledger
from tests.support.readside.ledger import Book
from tests.support.readside.projecting import running
from tests.support.waiting import wait_until


async def test_a_stream_that_was_created_anew_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """F19: at the start, however long the new one is; the tables stay as they are."""
    await book.append_randomly(50, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=50)
    before = await dump(store, ledger.MODEL)
    await log.create_anew()
    for commits in (0, 80):
        await Book(log).append_randomly(commits, accounts=10, seed=2)
        error = await stopped(Projector(log, store, ledger.MODEL))
        assert isinstance(error.__cause__, IncarnationChanged)
        assert "stream LEDGER: the stream was recreated" in str(error)
        assert "set the database aside" in str(error)
    assert await dump(store, ledger.MODEL) == before


async def test_a_stream_that_is_created_anew_stops_a_running_projector(log: FaultyLog, book: Book, store: Store) -> None:
    await book.append_randomly(50, accounts=10, seed=1)
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector) as task:
        await projector.wait_for(50, 20)
        await log.create_anew()
        with pytest.raises(ProjectorStopped, match="recreated"):
            await asyncio.wait_for(task, 20)
    assert projector.status().state is ProjectorState.STOPPED


async def test_a_stream_that_lost_its_end_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """The checkpoint is ahead of the log, in the same incarnation. The error differs from that for a recreated stream."""
    await book.append_randomly(50, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=50)
    del log._commits[-1]
    error = await stopped(Projector(log, store, ledger.MODEL))
    assert isinstance(error.__cause__, LogTruncated)
    assert "is at sequence 50, ahead of the log, which ends at 49" in str(error)


async def test_a_stream_that_lost_its_beginning_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """A reader that still needs the beginning refuses it. A reader that is past it continues."""
    await book.append_randomly(50, accounts=10, seed=1)
    log.first = 31
    error = await stopped(Projector(log, store, ledger.MODEL))
    assert isinstance(error.__cause__, LogTruncated)
    assert "needs sequence 1, but the log begins at 31" in str(error)
    log.first = 1
    await Projector(log, store, ledger.MODEL).run(until=30)
    log.first = 31
    await Projector(log, store, ledger.MODEL).run(until=50)


async def test_two_projectors_on_one_file_cannot_both_go_on(log: FaultyLog, book: Book, tmp_path: Path) -> None:
    """The second one finds the checkpoint moved, though it has the very same rows. The first one continues."""
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, ledger.MODEL).up()
        await only_one_goes_on(log, book, store, Faults(store))


async def only_one_goes_on(log: FaultyLog, book: Book, store: Store, faults: Faults) -> None:
    await book.append_randomly(20, accounts=10, seed=1)
    both = [Projector(log, store, ledger.MODEL) for _ in range(2)]
    faults.gate.clear()
    async with running(both[0]) as first, running(both[1]) as second:
        await wait_until(lambda: faults.tries == 2)
        faults.gate.set()
        done, _ = await asyncio.wait({first, second}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert isinstance(done.pop().exception(), CheckpointMoved)
        await book.append_randomly(20, accounts=10, seed=2)
        (alive,) = (projector for projector in both if projector.status().state is not ProjectorState.STOPPED)
        await alive.wait_for(40, 20)
    assert await equals_a_fold(log, store)
