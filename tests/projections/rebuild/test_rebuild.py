"""Rebuilding a read model next to the live tables, while reads and writes continue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest
import pytest_asyncio

from eventlog.testing.memory import MemoryLog
from projections.errors import CopyRefused, StoreInUse
from projections.migrations import Migrations
from projections.model import Projection, Put, ReadModel
from projections.projector.projector import Projector
from projections.rebuild.rebuild import check_whole, confirm, fill, switch
from projections.rebuild.verify import compare, dump, replayed_copy, verify
from projections.store import Checkpoint, CopyPart, Step
from projections.stores.databases import copies_at, store_at
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.support.readside import ledger
from tests.support.readside.ledger import FIXED, MODEL, Book, Booked, Opened
from tests.support.readside.projecting import running
from tests.support.readside.tables import change, execute

SCHEMA = '"Ü ?"'
EitherStore = SQLiteStore | PostgresStore


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(ledger.REGISTRY)


@pytest.fixture
def book(log: MemoryLog) -> Book:
    return Book(log)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of either kind; the names of file and schema are not plain."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'ü?[0].db'}"
    database: str = request.getfixturevalue("postgres_url")
    return f"{database}&search_path={quote(SCHEMA)}"


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[EitherStore]:
    if not url.startswith("sqlite:"):
        await execute(url, f"CREATE SCHEMA {SCHEMA}")
    async with store_at(url) as store:
        await Migrations(store, MODEL).up()
        yield store


async def equals_a_fold(log: MemoryLog, store: EitherStore, model: ReadModel = MODEL) -> None:
    async with replayed_copy(log, model, until=(await log.head()).last) as fresh:
        difference = await compare(store, fresh, model)
        assert difference is None, str(difference)
        assert await dump(store, model) == await dump(fresh, model)


async def make_copy(log: MemoryLog, url: str, model: ReadModel = MODEL) -> int:
    async with copies_at(url).store(CopyPart.NEW) as copy:
        await fill(copy, log, model)
        return await confirm(copy, log, model)


async def test_under_reads_and_writes_no_read_fails_or_goes_back_in_time(
    log: MemoryLog, book: Book, store: EitherStore, url: str
) -> None:
    """A wrong row in the live tables is right after the switch, and wrong again after the rollback. The projector continues."""
    await book.append_randomly(3000, accounts=50, seed=1, batch=50)
    projector = Projector(log, store, MODEL)
    async with running(projector):
        await projector.wait_for(3000, 20)
        await store.advance([])
        await change(url, "UPDATE accounts SET owner = 'nobody' WHERE id = 'account-7'")
        seen, done = [0], False

        async def write() -> None:
            part = 2
            while not done:
                await book.append_randomly(20, accounts=50, seed=part, batch=5)
                part += 1
                await asyncio.sleep(0.01)

        async def read() -> None:
            while not done:
                row = await store.fetch_one(
                    "SELECT max(sequence) AS reached FROM projection_checkpoints WHERE projection = 'owners'"
                )
                counted = await store.fetch_one("SELECT count(*) AS n FROM accounts")
                assert row is not None
                assert counted is not None
                assert counted["n"] > 40
                assert row["reached"] >= seen[-1]
                seen.append(row["reached"])
                await asyncio.sleep(0)

        async def wrong() -> bool:
            return await store.fetch_one("SELECT 1 FROM accounts WHERE owner = 'nobody'") is not None

        tasks = [asyncio.create_task(write()), asyncio.create_task(read())]
        copies = copies_at(url)
        assert await make_copy(log, url) >= 3000
        await switch(projector, store, copies, log, MODEL)
        right = not await wrong()
        assert await copies.there() == [CopyPart.OLD]
        await projector.wait_for((await log.head()).last, 20)
        await switch(projector, store, copies, log, MODEL, CopyPart.OLD)
        assert await copies.there() == [CopyPart.NEW]
        await projector.wait_for((await log.head()).last, 20)
        done = True
        await asyncio.gather(*tasks)
        assert len(seen) > 100
        last = (await log.head()).last
        await projector.wait_for(last, 20)
        assert projector.status().error is None
    assert right


async def test_a_copy_that_is_not_what_it_should_be_is_refused(log: MemoryLog, book: Book, store: EitherStore, url: str) -> None:
    """A changed cell, a missing row, an extra one: before it is verified with the difference, after it by the digest."""
    await book.append_randomly(300, accounts=20, seed=1)
    projector = Projector(log, store, MODEL)
    await projector.run(until=300)
    copies = copies_at(url)
    with pytest.raises(CopyRefused, match="there is no copy"):
        await switch(projector, store, copies, log, MODEL)
    async with copies.store(CopyPart.NEW) as copy:
        await fill(copy, log, MODEL)
    with pytest.raises(CopyRefused, match="not verified"):
        await switch(projector, store, copies, log, MODEL)
    for sql, said in {
        "UPDATE accounts SET balance = balance + 1 WHERE id = 'account-3'": "balance is",
        "DELETE FROM owners WHERE account = 'account-5'": "is missing",
        "INSERT INTO owners VALUES ('zoe', 'account-77')": "should not be there",
        "UPDATE projection_checkpoints SET applied = 299 WHERE projection = 'owners'": "applied is 299, should be 300",
    }.items():
        await copies.discard(CopyPart.NEW)
        async with copies.store(CopyPart.NEW) as copy:
            await fill(copy, log, MODEL)
            await change(url, sql, CopyPart.NEW)
            with pytest.raises(CopyRefused, match=said):
                await confirm(copy, log, MODEL)
        with pytest.raises(CopyRefused, match="not verified"):
            await switch(projector, store, copies, log, MODEL)
        await copies.discard(CopyPart.NEW)
        await make_copy(log, url)
        async with copies.reader(CopyPart.NEW) as copy_again:
            await check_whole(copy_again, MODEL)
        await change(url, sql, CopyPart.NEW)
        async with copies.reader(CopyPart.NEW) as copy_again:
            with pytest.raises(CopyRefused, match="has changed since it was verified"):
                await check_whole(copy_again, MODEL)
    assert await copies.there() == [CopyPart.NEW]
    await equals_a_fold(log, store)


async def test_a_copy_is_gone_on_with_where_it_was_left(log: MemoryLog, book: Book, store: EitherStore, url: str) -> None:
    """It keeps its checkpoint, and no commit is applied twice."""
    await book.append_randomly(500, accounts=20, seed=1)
    copies, begun = copies_at(url), []

    async def partly(projector: Projector, until: int) -> None:
        begun.append(projector.farthest)
        await projector.run(until=min(until, 200))
        raise InterruptedError

    async with copies.store(CopyPart.NEW) as copy:
        with pytest.raises(InterruptedError):
            await fill(copy, log, MODEL, run=partly)
        with pytest.raises(StoreInUse):
            await copies.discard(CopyPart.NEW)
        assert not await has_index(copy)
    async with copies.store(CopyPart.NEW) as copy:
        assert {c.sequence for c in (await copy.checkpoints()).values()} == {200}
        assert await fill(copy, log, MODEL) == 500
        assert await has_index(copy)
        await confirm(copy, log, MODEL)


async def has_index(store: EitherStore) -> bool:
    """Whether the tables have the index that only queries need: it is left out while a copy is filled."""
    catalog = (
        "pg_indexes WHERE schemaname = current_schema() AND indexname"
        if store.dialect == "postgres"
        else "sqlite_schema WHERE name"
    )
    return await store.fetch_one(f"SELECT 1 FROM {catalog} = 'entries_by_time'") is not None


async def test_a_copy_with_which_somebody_began_to_go_on_has_its_indexes_when_it_takes_their_place(
    log: MemoryLog, book: Book, store: EitherStore, url: str
) -> None:
    """It is verified, and its table of entries is still empty: so the index was left out again."""
    await book.append("account-1", Opened("ann"))
    projector, copies = Projector(log, store, MODEL), copies_at(url)
    await projector.run(until=1)
    await make_copy(log, url)

    async def not_at_all(projector: Projector, until: int) -> None:
        raise InterruptedError

    async with copies.store(CopyPart.NEW) as copy:
        with pytest.raises(InterruptedError):
            await fill(copy, log, MODEL, run=not_at_all)
        assert not await has_index(copy)
    await switch(projector, store, copies, log, MODEL)
    assert await has_index(store)


async def test_a_copy_of_another_version_waits_for_it(log: MemoryLog, book: Book, store: EitherStore, url: str) -> None:
    """The running program refuses it and continues. The program that it was made for takes it, and the old one can go back."""
    await book.append_randomly(100, accounts=20, seed=1)
    projector = Projector(log, store, MODEL)
    await projector.run(until=100)
    accounts, owners = ledger.PROJECTIONS
    loud = attrs.evolve(
        owners,
        version=2,
        handlers={
            ledger.CATEGORY: lambda commit: [
                Put(change.table, (change.row[0], change.row[1].upper())) if isinstance(change, Put) else change
                for change in ledger.owner_changes(commit)
            ]
        },
    )
    newer = attrs.evolve(MODEL, projections=(accounts, loud))
    copies = copies_at(url)
    await make_copy(log, url, newer)
    with pytest.raises(CopyRefused, match="'owners' is of version 2, this program has 1"):
        await switch(projector, store, copies, log, MODEL)
    await book.append_randomly(50, accounts=20, seed=2)
    later = Projector(log, store, newer)
    await later.load()
    await switch(later, store, copies, log, newer)
    await Projector(log, store, newer).run(until=150)
    await equals_a_fold(log, store, newer)
    with pytest.raises(CopyRefused, match="is of version 1, this program has 2"):
        await switch(later, store, copies, log, newer, CopyPart.OLD)
    before = Projector(log, store, MODEL)
    await before.load()
    await switch(before, store, copies, log, MODEL, CopyPart.OLD)
    await Projector(log, store, MODEL).run(until=150)
    await equals_a_fold(log, store)


async def test_checkpoints_of_others_go_along_and_parked_aggregates_do_not(
    log: MemoryLog, book: Book, store: EitherStore, url: str
) -> None:
    """Another owner of a checkpoint in the same database finds it. An aggregate that the copy could apply is not parked in it."""
    other = Projection("jobs", 1, (), {})
    jobs = Checkpoint(projection="jobs", version=1, incarnation=log.incarnation, sequence=7, applied=7)
    await book.append("a", Opened("ann"), Booked(1, "poison"))
    await book.append("a", Booked(2))
    projector = Projector(log, store, MODEL)
    await projector.run(until=2)
    await store.advance([Step(projection=other, before=None, after=jobs, changes=())])
    projector = Projector(log, store, FIXED)
    await projector.run(until=2)
    assert len(projector.parked) == 1
    await make_copy(log, url, FIXED)
    await switch(projector, store, copies_at(url), log, FIXED)
    assert projector.parked == {}
    assert set(await store.checkpoints()) == {"accounts", "owners", "command_keys", "jobs"}
    assert (await store.checkpoints())["jobs"] == jobs
    moved = attrs.evolve(jobs, sequence=9)
    await store.advance([Step(projection=other, before=jobs, after=moved, changes=())])
    await switch(projector, store, copies_at(url), log, FIXED, CopyPart.OLD)
    assert len(projector.parked) == 1
    assert (await store.checkpoints())["jobs"] == moved


async def test_what_was_switched_to_is_there_after_a_restart_and_older_files_go(
    log: MemoryLog, book: Book, tmp_path: Path
) -> None:
    path = tmp_path / "read.db"
    async with SQLiteStore(path, patience=0) as store:
        await Migrations(store, MODEL).up()
        await switched_again_and_again(log, book, store, path)


async def switched_again_and_again(log: MemoryLog, book: Book, store: SQLiteStore, path: Path) -> None:
    url = f"sqlite:{path}"
    await book.append_randomly(100, accounts=20, seed=1)
    projector, copies = Projector(log, store, MODEL), copies_at(url)
    await projector.run(until=100)
    for number in (1, 2, 3):
        await make_copy(log, url)
        await switch(projector, store, copies, log, MODEL)
        assert store.file == path.with_name(f"{path.name}.{number}")
        assert json.loads(path.with_name(f"{path.name}.live").read_bytes()) == {"live": number, "old": number - 1}
    databases = {file.name for file in path.parent.iterdir() if not file.name.endswith(("-wal", "-shm", ".lock", ".live"))}
    assert databases == {f"{path.name}.2", f"{path.name}.3"}
    await copies.discard(CopyPart.OLD)
    assert await copies.there() == []
    await store.close()
    await store.open()
    assert store.file.name == f"{path.name}.3"
    await equals_a_fold(log, store)


# Verification of the live tables


async def test_verify_finds_the_first_difference(log: MemoryLog, book: Book, store: EitherStore, url: str) -> None:
    await book.append("account-3", Opened("kim"), Booked(5), key="k")
    await book.append_randomly(1200, accounts=40, seed=1, batch=40)
    await Projector(log, store, MODEL).run(until=1201)
    if not await store.fetch("SELECT 1 FROM entries WHERE account = 'account-3' AND number = 1"):
        await book.append("account-3", Opened("kim"), Booked(5))
        await Projector(log, store, MODEL).run(until=1202)
    assert (await verify(store, log, MODEL)).difference is None
    await change(url, "DELETE FROM entries WHERE account = 'account-3' AND number = 1")
    difference = (await verify(store, log, MODEL)).difference
    assert difference is not None
    assert "entries 'account-3', 1: is missing" in str(difference)
