"""Rows derived by several processes: the same tables with any number of them, also if they are killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import psutil
import pytest

from eventlog import Commit
from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.testing.memory import MemoryLog
from gctd import readmodel as tracker
from pantry import readmodel as pantry
from projections.errors import ProjectorStopped, WorkerLost
from projections.migrations import Migrations
from projections.model import ReadModel
from projections.parallel import Workers
from projections.projector.projector import Projector
from projections.rebuild.verify import Dump, compare, dump, replayed_copy
from projections.store import Parked, Store
from projections.stores.databases import store_at
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.projections.cli.test_cli import append, run
from tests.support.pantry.stocked import stocked_log
from tests.support.readside import ledger
from tests.support.readside.deriving import DEADLY, MISFIT, MISFITS, PLACE_OF_DEADLY, PLACE_OF_MISFIT
from tests.support.readside.ledger import MODEL, PLACE, Book, Booked, Closed, Opened
from tests.support.readside.projecting import ledger_log, start_projector
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

POISON, REFUSED = Booked(1, "poison"), Booked(-(10**6))


async def troubled_log(seed: int) -> MemoryLog:
    """Make a log with every case: idempotency keys, rows that pass from one aggregate to another, commits that cannot be
    applied or read, rows that a database refuses, and more commits of aggregates that are parked by then.
    """
    chance, log = random.Random(seed), MemoryLog(ledger.REGISTRY)
    book = Book(log)
    for part in range(12):
        await book.append_randomly(40, accounts=25, seed=chance.randrange(10**6))
        await book.append(f"moved-{part}", Opened("one after the other"), Booked(part), key=f"key-{part}")
        if part in {3, 7}:
            await book.append(f"bad-{part}", Opened(f"bad {part}"), Booked(5))
            await book.append(f"bad-{part}", POISON, POISON)
        if part == 5:
            await book.append("refused", Opened("refused"))
            await book.append("refused", REFUSED)
        if part > 3:
            await book.append("bad-3", Booked(part), key=f"waits-{part}")
        await book.append(f"moved-{part}", Closed())
    damaged = log._commits[100]
    log._commits[100] = Commit(damaged.sequence, damaged.subject, b"{", ledger.REGISTRY)
    return log


def comparable(parked: Iterable[Parked]) -> Sequence[Parked]:
    """Return the parked aggregates without their times. The errors of a database for refused rows are also left out."""
    same = [attrs.evolve(one, at=ledger.EPOCH) for one in parked]
    return [attrs.evolve(one, error="", traceback="") if one.subject == "ledger.account.refused" else one for one in same]


def deriving(parent: int) -> Sequence[psutil.Process]:
    """The children of a process that derive."""
    children = psutil.Process(parent).children()
    return [child for child in children if "projections.parallel.worker" in child.cmdline()]


async def project(log: MemoryLog, store: Store, model: ReadModel, count: int, place: str | None, batch: int) -> Dump:
    await Migrations(store, model).up()
    async with Workers(model, count, place=place) as workers:
        await Projector(log, store, model, batch=batch).run(until=(await log.head()).last, workers=workers)
        assert len(workers.pids) == count
    return await dump(store, model)


@pytest.mark.parametrize("count", [2, *(pytest.param(count, marks=pytest.mark.long) for count in (1, 8))])
async def test_the_tables_are_the_same_with_any_number_of_processes(
    either_store: SQLiteStore | PostgresStore, tmp_path: Path, count: int, seed: int
) -> None:
    """Rows, keys, counts, and parked aggregates with every line of the traceback, equal the tables of one process."""
    log = await troubled_log(seed)
    async with SQLiteStore(tmp_path / "one.db") as alone:
        expected = await project(log, alone, MODEL, 0, PLACE, batch=30)
        assert await project(log, either_store, MODEL, count, PLACE, batch=30) == expected
        assert await compare(either_store, alone, MODEL) is None
        parked = comparable(await either_store.parked())
        assert parked == comparable(await alone.parked())
    in_trouble = {"ledger.account.bad-3", "ledger.account.bad-7", "ledger.account.refused", log._commits[100].subject}
    assert {one.subject for one in parked} == in_trouble
    assert next(one.waiting for one in parked if one.subject == "ledger.account.bad-3") > 1


async def test_the_tables_of_a_service_are_the_same(either_store: SQLiteStore | PostgresStore) -> None:
    """The service is the pantry, with rows that are put with fewer columns and personal fields that stay sealed."""
    log = await stocked_log(products=120, movements=20, categories=7)
    await project(log, either_store, pantry.MODEL, 2, None, batch=20)
    async with replayed_copy(log, pantry.MODEL, until=(await log.head()).last) as alone:
        assert await dump(either_store, pantry.MODEL) == await dump(alone, pantry.MODEL)
        assert await compare(either_store, alone, pantry.MODEL) is None


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param({600: [0]}, id="one"),
        pytest.param({600: [0], 1200: [1], 1800: [0, 1]}, id="one, the other, both", marks=pytest.mark.long),
    ],
)
async def test_processes_that_are_killed_cost_nothing(
    either_store: SQLiteStore | PostgresStore, moments: dict[int, list[int]], seed: int
) -> None:
    """kill -9: their work is derived a second time, and the result equals a clean fold."""
    log = MemoryLog(ledger.REGISTRY)
    await Book(log).append_randomly(3000, accounts=100, seed=seed)
    await Migrations(either_store, MODEL).up()
    killing = dict(moments)
    killed: list[int] = []

    def kill(commits: Sequence[Commit]) -> None:
        for moment in [moment for moment in killing if moment <= commits[-1].sequence]:
            for number in killing.pop(moment):
                killed.append(workers.pids[number])
                os.kill(killed[-1], signal.SIGKILL)

    async with Workers(MODEL, 2, place=PLACE) as workers:
        projector = Projector(log, either_store, MODEL, batch=100, on_applied=kill)
        await projector.run(until=3000, workers=workers)
        assert len(set(killed)) == sum(map(len, moments.values()))
        assert not {*killed} & {*workers.pids}
        assert len(deriving(os.getpid())) == 2
    async with replayed_copy(log, MODEL, until=3000) as alone:
        assert await compare(either_store, alone, MODEL) is None
        assert await dump(either_store, MODEL) == await dump(alone, MODEL)
    assert deriving(os.getpid()) == []


async def test_where_processes_die_of_a_commit_the_projector_says_so_and_stops_before_it(tmp_path: Path) -> None:
    """It does not retry for ever, and does not skip the commit. Earlier commits are stored, and a later run continues there."""
    log = MemoryLog(ledger.REGISTRY)
    book = Book(log)
    await book.append_randomly(60, accounts=10, seed=1)
    await book.append("end", Opened("deadly"))
    await book.append_randomly(10, accounts=10, seed=2)
    async with store_at(f"sqlite:{tmp_path / 'read.db'}") as store:
        await Migrations(store, MODEL).up()
        async with Workers(DEADLY, 1, place=PLACE_OF_DEADLY) as workers:
            with pytest.raises(ProjectorStopped, match=r"died 3 times .* ended by SIGKILL.*--workers 0") as stopped:
                await Projector(log, store, DEADLY, batch=20).run(until=71, workers=workers)
        assert isinstance(stopped.value.__cause__, WorkerLost)
        reached = {checkpoint.sequence for checkpoint in (await store.checkpoints()).values()}
        assert reached <= {*range(61)}
        await Projector(log, store, MODEL).run(until=71)
        async with replayed_copy(log, MODEL, until=71) as alone:
            assert await dump(store, MODEL) == await dump(alone, MODEL)


async def test_a_result_that_is_no_change_parks_the_same_with_any_number_of_processes(tmp_path: Path) -> None:
    """Also if it cannot be sent to another process, or would come as another value."""
    log = MemoryLog(ledger.REGISTRY)
    book = Book(log)
    for fault in MISFITS:
        await book.append_randomly(20, accounts=10, seed=len(fault))
        await book.append(f"bad-{MISFITS.index(fault)}", Opened(fault))
    async with SQLiteStore(tmp_path / "one.db") as alone, SQLiteStore(tmp_path / "several.db") as store:
        expected = await project(log, alone, MISFIT, 0, PLACE_OF_MISFIT, batch=30)
        assert await project(log, store, MISFIT, 2, PLACE_OF_MISFIT, batch=30) == expected
        parked, others = await store.parked(), await alone.parked()
    assert [(one.place, one.sequence, one.waiting, one.error.replace("several.db", "one.db")) for one in parked] == [
        (one.place, one.sequence, one.waiting, one.error) for one in others
    ]
    assert [one.subject for one in parked] == [f"ledger.account.bad-{number}" for number in range(len(MISFITS))]


def test_a_model_that_is_not_the_one_at_its_place_is_refused() -> None:
    """The processes would make the rows of another one."""
    with pytest.raises(ValueError, match="not the read model"):
        Workers(ledger.FIXED, 2, place=PLACE)


async def test_they_end_with_the_process_that_started_them_however_it_ends(nats_url: str, tmp_path: Path) -> None:
    """Also after kill -9 of that process."""
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(200, accounts=20, seed=1)
        process = await asyncio.to_thread(start_projector, nats_url, f"sqlite:{tmp_path / 'read.db'}", 50, workers=2)
        try:
            await wait_until(lambda: len(deriving(process.pid)) == 2, timeout=60, every=0.05)
            children = deriving(process.pid)
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)
        await wait_until(lambda: not any(child.is_running() for child in children), timeout=60)


async def test_a_rebuild_and_a_verification_take_them(nats_url: str, tmp_path: Path) -> None:
    """`--workers` of the commands: the same tables, and no process remains."""
    where = {"GCTD_NATS_URL": nats_url, "GCTD_DATABASE_URL": f"sqlite:{tmp_path / 'read.db'}"}
    async with Connection.open(nats_url, name="test") as connection:
        await streams.apply(connection, load().only(tracker.MODEL.stream))
        log = JetStreamLog(connection, tracker.MODEL.stream, tracker.MODEL.registry)
        for number in range(20):
            await append(log, f"w{number % 5}", number)
        async with store_at(where["GCTD_DATABASE_URL"]) as store:
            await Migrations(store, tracker.MODEL).up()
            await Projector(log, store, tracker.MODEL).run(until=20)
            digest = (await dump(store, tracker.MODEL)).digest
        rebuilt = await run("rebuild", "--workers", "2", **where)
        assert rebuilt.code == 0, rebuilt.err
        verified = await run("verify", "--workers", "1", "--json", **where)
        assert verified.code == 0, verified.err
        assert json.loads(verified.out)["digest"] == digest
