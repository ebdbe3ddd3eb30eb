"""A new version of a read model takes over: old and new tables side by side, until the new ones are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs
import pytest
from structlog.testing import capture_logs

from eventlog import Commit
from eventlog.jetstream.log import JetStreamLog
from httpkit.feed import CommitFrames
from httpkit.readside import ReadSide, migrated
from projections.copies import Copies, Part
from projections.databases import copies_at, store_at
from projections.errors import ProjectionError
from projections.fold import compare, folded
from projections.model import Change, Put, ReadModel
from projections.projector import Projector
from projections.rebuild import VERIFIED, confirm, fill, rollback
from projections.store import Store
from projections.upgrade import upgrade
from tests.support import ledger
from tests.support.ledger import MODEL, Book
from tests.support.projecting import ledger_log
from tests.support.waiting import wait_until


class Older(ReadModel):
    """A read model without the last of its migrations: that of the program before."""

    def migration_files(self) -> Iterable[tuple[str, str]]:
        return [(name, text) for name, text in super().migration_files() if not name.startswith("000004")]


def loudly(commit: Commit) -> Iterable[Change]:
    for change in ledger.owner_changes(commit):
        yield Put(change.table, (change.row[0], change.row[1].upper())) if isinstance(change, Put) else change


ACCOUNTS, OWNERS = ledger.PROJECTIONS
LOUD = attrs.evolve(MODEL, projections=(ACCOUNTS, attrs.evolve(OWNERS, version=2, handlers={ledger.CATEGORY: loudly})))
OLDER = Older(**{field.name: getattr(MODEL, field.name) for field in attrs.fields(ReadModel)})


@asynccontextmanager
async def served(log: JetStreamLog, url: str, model: ReadModel) -> AsyncIterator[tuple[ReadSide, Store]]:
    async with migrated(url, model) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=model, frames=frames, max_lag=60)
        async with side.running():
            yield side, store


async def equals_a_fold(log: JetStreamLog, store: Store, model: ReadModel, until: int) -> None:
    async with folded(log, model, until=until) as fresh:
        assert await compare(store, fresh, model) is None


async def test_tables_that_were_made_for_a_new_version_are_taken_at_its_start(nats_url: str, database_url: str) -> None:
    """The old program serves until then; what came since the copy was made is in it before anybody reads; it can go back."""
    copies = copies_at(database_url)
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(200, accounts=20, seed=1)
        async with served(log, database_url, OLDER) as (side, _):
            await side.projector.wait_for(200, 20)
            async with copies.store(Part.NEW) as copy:
                await fill(copy, log, LOUD)
                await confirm(copy, log, LOUD)
            await book.append_randomly(50, accounts=20, seed=2)
            await side.projector.wait_for(250, 20)
        async with served(log, database_url, LOUD) as (side, store):
            assert await copies.there() == [Part.OLD]
            assert {c.sequence for c in (await store.checkpoints()).values()} == {250}
            await book.append_randomly(10, accounts=20, seed=3)
            await side.projector.wait_for(260, 20)
            await equals_a_fold(log, store, LOUD, 260)
        async with store_at(database_url) as before:
            projector = Projector(log, before, OLDER)
            await projector.load()
            await rollback(projector, before, copies, log, OLDER)
        async with served(log, database_url, OLDER) as (side, store):
            await side.projector.wait_for(260, 20)
            assert (await store.schema()).version == 3
            await equals_a_fold(log, store, OLDER, 260)


async def test_where_only_rows_differ_the_old_ones_are_shown_until_the_new_are_there(
    nats_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = asyncio.Event()

    async def held(*arguments: object) -> None:
        await going.wait()
        await upgrade(*arguments)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr("httpkit.readside.upgrade", held)
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(200, accounts=20, seed=1)
        async with served(log, database_url, MODEL) as (side, _):
            await side.projector.wait_for(200, 20)
        await book.append_randomly(50, accounts=20, seed=2)
        async with served(log, database_url, LOUD) as (side, store):
            count = await store.fetch("SELECT count(*) AS n FROM owners WHERE account LIKE 'account-%'")
            assert count[0]["n"] > 10
            assert side.projector.position == 0
            going.set()
            await wait_until(lambda: side.projector.position == 250, timeout=20)
            await equals_a_fold(log, store, LOUD, 250)
            assert await copies_at(database_url).there() == [Part.OLD]


async def test_a_copy_that_another_process_has_begun_is_waited_for(nats_url: str, database_url: str) -> None:
    """Also before there is a table in it: it is not taken for that of another program, and the live tables are left alone."""
    copies = copies_at(database_url)
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        async with served(log, database_url, MODEL) as (side, _):
            await side.projector.wait_for(100, 20)
        async with copies.store(Part.NEW) as copy, served(log, database_url, LOUD) as (side, store):
            with capture_logs() as said:
                await wait_until(lambda: any("in use by another process" in line["event"] for line in said), timeout=30)
            assert side.projector.position == 0
            assert {c.version for c in (await store.checkpoints()).values()} == {1}
            await fill(copy, log, LOUD)
            await copy.close()
            await wait_until(partial(_has_reached, side, 100), timeout=30)
            assert await copies.there() == [Part.OLD]
            await equals_a_fold(log, store, LOUD, 100)


async def test_on_a_shared_database_the_old_program_serves_until_it_ends(nats_url: str, postgres_url: str) -> None:
    """The new one makes its tables beside and waits; the old one shows its own, and what comes; then the new one takes over.

    Of two processes of the new one either does.
    """
    copies = copies_at(postgres_url)
    async with ledger_log(nats_url) as log, AsyncExitStack() as new:
        book = Book(log)
        await book.append_randomly(100, accounts=20, seed=1)
        async with served(log, postgres_url, MODEL) as (old, shown):
            await old.projector.wait_for(100, 30)
            sides = [await new.enter_async_context(served(log, postgres_url, LOUD)) for _ in range(2)]
            await wait_until(lambda: _is_made(copies), timeout=60)
            await book.append_randomly(20, accounts=20, seed=2)
            await old.projector.wait_for(120, 30)
            count = await shown.fetch("SELECT count(*) AS n FROM owners WHERE account LIKE 'account-%'")
            assert count[0]["n"] > 10
            assert [side.projector.lead.held for side in (old, *(side for side, _ in sides))] == [True, False, False]
        for side, store in sides:
            await wait_until(partial(_has_reached, side, 120), timeout=60)
            assert await copies.there() == [Part.OLD]
            await equals_a_fold(log, store, LOUD, 120)
        assert sorted(side.projector.lead.held for side, _ in sides) == [False, True]


def _has_reached(side: ReadSide, sequence: int) -> bool:
    return side.projector.position >= sequence


async def _is_made(copies: Copies) -> bool:
    if Part.NEW not in await copies.there():
        return False
    copy = copies.reader(Part.NEW)
    try:
        await copy.open()
        return VERIFIED.name in await copy.checkpoints()
    except ProjectionError:
        return False
    finally:
        await copy.close()
