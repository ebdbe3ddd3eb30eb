"""A damaged database is noticed, set aside, and rebuilt from the log without a command."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from eventlog import Unavailable
from eventlog.jetstream.log import JetStreamLog
from eventlog.testing.memory import MemoryLog
from projections.errors import StoreDamaged, StoreForeign, StoreUnavailable
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.rebuild.rebuild import open_sound
from projections.rebuild.verify import compare, replayed_copy
from projections.stores.sqlite import SQLiteStore
from servicekit.read_side import CommitFrames, ReadSide, migrated
from servicekit.status_route import ReadModelBody
from tests.support.readside import ledger
from tests.support.readside.copying import copied_whole
from tests.support.readside.ledger import MODEL, Book, Booked
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until


async def made(log: MemoryLog, path: Path) -> None:
    """A database with the read model, closed in order."""
    async with migrated(f"sqlite:{path}", MODEL) as store:
        await Projector(log, store, MODEL).run(until=(await log.head()).last)


def names(directory: Path) -> list[str]:
    return [file.name for file in directory.iterdir()]


def spoil(path: Path, damage: str) -> None:
    data = bytearray(path.read_bytes())
    match damage:
        case "header":
            data[:16] = b"not a database!!"
        case "half":
            del data[len(data) // 2 :]
        case _:
            data[8192:] = os.urandom(len(data) - 8192)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["header", "half", "garbage"])
async def test_damage_is_noticed_at_the_start_and_made_good(tmp_path: Path, damage: str) -> None:
    """F16. The damaged file is kept."""
    log, path = MemoryLog(ledger.REGISTRY), tmp_path / "read.db"
    await Book(log).append_randomly(300, accounts=20, seed=1)
    await made(log, path)
    spoil(path, damage)
    spoilt = path.read_bytes()
    with pytest.raises(StoreDamaged, match="is damaged"):
        await SQLiteStore(path).open()
    async with migrated(f"sqlite:{path}", MODEL) as store:
        assert isinstance(store, SQLiteStore)
        aside = store.set_aside_as
        assert aside is not None
        assert aside.read_bytes() == spoilt
        await Projector(log, store, MODEL).run(until=300)
        async with replayed_copy(log, MODEL, until=300) as fresh:
            assert await compare(store, fresh, MODEL) is None
    await made(log, path)
    assert {name.split("-")[1].split(".")[0] for name in names(tmp_path) if ".damaged-" in name} == {aside.name.split("-")[1]}


async def test_the_database_of_another_program_is_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (id)")
    other.close()
    with pytest.raises(StoreForeign):
        await open_sound(SQLiteStore(path), MODEL)
    assert [name for name in names(tmp_path) if not name.endswith(".lock")] == ["photos.db"]


@asynccontextmanager
async def served(log: JetStreamLog, path: Path) -> AsyncIterator[tuple[ReadSide, SQLiteStore]]:
    async with migrated(f"sqlite:{path}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            assert isinstance(store, SQLiteStore)
            yield side, store


async def test_a_new_database_is_made_as_soon_as_it_can_be(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk without room, for example, ends no projector for good."""
    path = tmp_path / "read.db"
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(30, accounts=5, seed=1)
        async with served(log, path) as (side, store):
            await side.projector.wait_for(30, 20)
            await copied_whole(store)
            opened, refusals = store.open, [StoreUnavailable("no room"), StoreUnavailable("no room")]

            async def refused() -> None:
                if refusals:
                    raise refusals.pop()
                await opened()

            monkeypatch.setattr(store, "open", refused)
            spoil(path, "garbage")
            with pytest.raises(StoreDamaged):
                await store.fetch_in_thread("SELECT sum(length(owner)), sum(length(tags)) FROM accounts, entries")
            await wait_until(lambda: not refusals, timeout=20)
            await wait_until(
                lambda: side.projector.position == 30 and side.projector.status().state is ProjectorState.LIVE, timeout=20
            )
            async with replayed_copy(log, MODEL, until=30) as fresh:
                assert await compare(store, fresh, MODEL) is None


async def test_damage_under_a_running_service_is_made_good_while_it_runs(nats_url: str, tmp_path: Path) -> None:
    """A query finds it. The service reports it, fills a new database, and applies new events to it."""
    path = tmp_path / "read.db"
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(300, accounts=20, seed=1)
        async with served(log, path) as (side, store):
            await side.projector.wait_for(300, 20)
            await copied_whole(store)
            spoil(path, "garbage")
            with pytest.raises(StoreDamaged):
                await store.fetch_in_thread("SELECT sum(length(owner)), sum(length(tags)) FROM accounts, entries")
            await wait_until(lambda: store.set_aside_as is not None, timeout=20)
            await book.append("later", ledger.Opened("zoe"), Booked(1))
            await wait_until(lambda: side.projector.position == 301, timeout=20)
            assert "it was damaged and is rebuilt" in (side.parts.note() or "")
            body = ReadModelBody.of(await side.standing(), side.projector.status(), side.parts.note(), side.scrubber)
            assert (body.read_model, body.head, body.error, body.copies) == ("ledger", 301, None, [])
            assert [(one.name, one.position, one.applied) for one in body.projections] == [
                ("accounts", 301, 301),
                ("owners", 301, 301),
                ("command_keys", 301, 301),
            ]
            async with replayed_copy(log, MODEL, until=301) as fresh:
                assert await compare(store, fresh, MODEL) is None


async def test_tables_that_are_made_again_are_not_shown_as_the_former_ones(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries are refused while the tables are made. Then the position is the one of the new tables, also without the log."""
    path, asked = tmp_path / "read.db", list[object]()
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(30, accounts=5, seed=1)
        async with served(log, path) as (side, store):
            await side.projector.wait_for(30, 20)
            await copied_whole(store)
            migrated_by, head, asked_for, is_back = store.migrate, log.head, asyncio.Event(), asyncio.Event()

            async def slow(*args: Any, **more: Any) -> Any:
                with pytest.raises(StoreUnavailable, match="a new one is made") as refused:
                    await store.fetch("SELECT count(*) AS rows FROM accounts")
                asked.append(refused)
                return await migrated_by(*args, **more)

            async def away() -> Any:
                if is_back.is_set():
                    return await head()
                asked_for.set()
                raise Unavailable("the log is away")

            monkeypatch.setattr(store, "migrate", slow)
            monkeypatch.setattr(log, "head", away)
            spoil(path, "garbage")
            with pytest.raises(StoreDamaged):
                await store.fetch_in_thread("SELECT sum(length(owner)), sum(length(tags)) FROM accounts, entries")
            await wait_until(lambda: asked and store.withheld is None, timeout=20)
            asked_for.clear()
            await asyncio.wait_for(asked_for.wait(), 20)  # by the projector
            assert await store.fetch("SELECT count(*) AS rows FROM accounts") == [{"rows": 0}]
            assert side.projector.position == 0
            assert side.state() is None
            is_back.set()
            await wait_until(lambda: side.projector.position == 30, timeout=20)
            assert await store.fetch("SELECT count(*) AS rows FROM accounts") == [{"rows": 5}]
