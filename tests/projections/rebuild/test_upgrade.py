"""A new version of a read model takes over: old and new tables side by side, until the new ones are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from eventlog import Commit, EventLog
from eventlog.jetstream.log import JetStreamLog
from projections.errors import MigrationError, StoreUnavailable
from projections.migrations import Migrations
from projections.model import Change, Column, Delete, Put, ReadModel, Table
from projections.projector.projector import Projector
from projections.rebuild.rebuild import confirm, fill, switch
from projections.rebuild.verify import Run, compare, replayed_copy
from projections.store import CopyPart, Store
from projections.stores.databases import copies_at, store_at
from servicekit.read_side import CommitFrames, ReadSide, migrated
from tests.support.readside import ledger
from tests.support.readside.ledger import MODEL, Book
from tests.support.readside.projecting import ledger_log
from tests.support.readside.tables import execute
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


class Older(ReadModel):
    """A read model without the last two of its migrations, as in the program before."""

    def migration_files(self) -> Iterable[tuple[str, str]]:
        return [(name, text) for name, text in super().migration_files() if name < "000003"]


def loudly(commit: Commit) -> Iterable[Change]:
    for change in ledger.owner_changes(commit):
        yield Put(change.table, (change.row[0], change.row[1].upper())) if isinstance(change, Put) else change


ACCOUNTS, OWNERS = ledger.PROJECTIONS
LOUD = attrs.evolve(MODEL, projections=(ACCOUNTS, attrs.evolve(OWNERS, version=2, handlers={ledger.CATEGORY: loudly})))
OLDER = Older(**{**{field.name: getattr(MODEL, field.name) for field in attrs.fields(ReadModel)}, "projections": (ACCOUNTS,)})


class HalfWay:
    """Copies are filled up to half of the log, and then wait for the gate."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.reached = False
        self.begun = 0

    async def fill(self, copy: Store, event_log: EventLog, model: ReadModel, *, run: Run) -> int:
        self.begun = min((at.sequence for at in (await copy.checkpoints()).values()), default=0)
        return await fill(copy, event_log, model, run=run)


@pytest.fixture
def half_way(monkeypatch: pytest.MonkeyPatch) -> HalfWay:
    half_way = HalfWay()

    class Halting(Projector):
        async def run(self, *, until: int | None = None) -> None:
            assert until is not None
            await super().run(until=until // 2)
            half_way.reached = True
            await half_way.gate.wait()
            await super().run(until=until)

    monkeypatch.setattr("projections.rebuild.rebuild.Projector", Halting)
    monkeypatch.setattr("projections.rebuild.rebuild.fill", half_way.fill)
    return half_way


@asynccontextmanager
async def served(log: JetStreamLog, url: str, model: ReadModel) -> AsyncIterator[tuple[ReadSide, Store]]:
    async with migrated(url, model) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=model, frames=frames, max_lag=60)
        async with side.running():
            yield side, store


async def equals_a_fold(log: JetStreamLog, store: Store, model: ReadModel, until: int) -> None:
    async with replayed_copy(log, model, until=until) as fresh:
        assert await compare(store, fresh, model) is None


async def test_tables_that_were_made_for_a_new_version_are_taken_at_its_start(nats_url: str, database_url: str) -> None:
    """The old program serves until then. The tables have later commits before the first read. The program can go back."""
    copies = copies_at(database_url)
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(200, accounts=20, seed=1)
        async with served(log, database_url, OLDER) as (side, _):
            await side.projector.wait_for(200, 20)
            async with copies.store(CopyPart.NEW) as copy:
                await fill(copy, log, LOUD)
                await confirm(copy, log, LOUD)
            await book.append_randomly(50, accounts=20, seed=2)
            await side.projector.wait_for(250, 20)
        with capture_logs() as said:
            async with served(log, database_url, LOUD) as (side, store):
                await wait_until(partial(_answers, store), timeout=30)
                assert await copies.there() == [CopyPart.OLD]
                assert {c.sequence for c in (await store.checkpoints()).values()} == {250}
                await book.append_randomly(10, accounts=20, seed=3)
                await side.projector.wait_for(260, 20)
                await equals_a_fold(log, store, LOUD, 260)
        assert not any("are made" in line.get("state", "") for line in said)
        async with store_at(database_url) as before:
            projector = Projector(log, before, OLDER)
            await projector.load()
            await switch(projector, before, copies, log, OLDER, CopyPart.OLD)
        async with served(log, database_url, OLDER) as (side, store):
            await side.projector.wait_for(260, 20)
            assert (await store.schema()).version == 2
            await equals_a_fold(log, store, OLDER, 260)


async def test_where_tables_differ_nothing_is_shown_until_the_new_ones_are_there(
    nats_url: str, database_url: str, half_way: HalfWay
) -> None:
    """The program makes them itself and reports its progress. If it ends half way, the next one continues with them."""
    copies = copies_at(database_url)
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(200, accounts=20, seed=1)
        async with served(log, database_url, OLDER) as (side, _):
            await side.projector.wait_for(200, 20)
        for begins in (0, 100):
            async with served(log, database_url, MODEL) as (side, store):
                await wait_until(lambda: half_way.reached)
                assert half_way.begun == begins
                reason = await side.parts.health().reason() or ""
                assert "read model: new tables are made for this version: 100 events applied, 100 left" in reason
                with pytest.raises(StoreUnavailable, match="the tables belong to another version"):
                    await store.fetch_one("SELECT count(*) AS n FROM accounts")
                half_way.reached = False
        half_way.gate.set()
        async with served(log, database_url, MODEL) as (side, store):
            await wait_until(partial(_is_ready, side), timeout=30)
            assert side.projector.position == 200
            await equals_a_fold(log, store, MODEL, 200)
            assert await copies.there() == [CopyPart.OLD]


async def test_tables_of_which_an_operator_has_taken_migrations_back_are_filled_where_they_are(
    nats_url: str, database_url: str
) -> None:
    """They are not an older program's: no copy is made."""
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        async with served(log, database_url, MODEL) as (side, _):
            await side.projector.wait_for(100, 20)
        async with store_at(database_url) as store:
            for _ in range(2):
                await Migrations(store, MODEL).down()
            assert set(await store.checkpoints()) == {"accounts", "command_keys"}
        async with served(log, database_url, MODEL) as (side, store):
            await side.projector.wait_for(100, 20)
            await equals_a_fold(log, store, MODEL, 100)
            assert await copies_at(database_url).there() == []


async def test_the_tables_of_a_newer_program_are_left_alone(nats_url: str, database_url: str) -> None:
    """Unless the older one has made its own beforehand."""
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        async with served(log, database_url, MODEL) as (side, _):
            await side.projector.wait_for(100, 20)
        with pytest.raises(MigrationError, match="run the program that made it, or set the database aside"):
            async with served(log, database_url, OLDER):
                pass
        async with copies_at(database_url).store(CopyPart.NEW) as copy:
            await fill(copy, log, OLDER)
            await confirm(copy, log, OLDER)
        async with served(log, database_url, OLDER) as (side, store):
            await wait_until(lambda: side.projector.position == 100, timeout=30)
            await equals_a_fold(log, store, OLDER, 100)


async def test_where_only_rows_differ_the_old_ones_are_shown_until_the_new_are_there(
    nats_url: str, database_url: str, half_way: HalfWay
) -> None:
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(200, accounts=20, seed=1)
        async with served(log, database_url, MODEL) as (side, _):
            await side.projector.wait_for(200, 20)
        await book.append_randomly(50, accounts=20, seed=2)
        async with served(log, database_url, LOUD) as (side, store):
            await wait_until(lambda: half_way.reached)
            count = await store.fetch("SELECT count(*) AS n FROM owners WHERE account LIKE 'account-%'")
            assert count[0]["n"] > 10
            assert side.projector.position == 0
            assert "125 events applied, 125 left" in (await side.parts.health().reason() or "")
            half_way.gate.set()
            await wait_until(lambda: side.projector.position == 250, timeout=20)
            await equals_a_fold(log, store, LOUD, 250)
            assert await copies_at(database_url).there() == [CopyPart.OLD]


@pytest.mark.parametrize("before", [MODEL, OLDER], ids=["rows differ", "tables differ"])
async def test_a_copy_that_another_process_has_begun_is_waited_for(nats_url: str, database_url: str, before: ReadModel) -> None:
    """Also before it has a table. It is not taken for another program's copy, and the live tables are left alone."""
    copies = copies_at(database_url)
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        async with served(log, database_url, before) as (side, _):
            await side.projector.wait_for(100, 20)
        async with copies.store(CopyPart.NEW) as copy, served(log, database_url, LOUD) as (side, store):
            await wait_until(partial(_says, side, "another process is waited for"), timeout=30)
            assert side.projector.position == 0
            assert {c.version for c in (await store.checkpoints()).values()} == {1}
            await fill(copy, log, LOUD)
            await copy.close()
            await wait_until(partial(_has_reached, side, 100), timeout=30)
            assert await copies.there() == [CopyPart.OLD]
            await equals_a_fold(log, store, LOUD, 100)


@pytest.mark.parametrize("before", [MODEL, OLDER], ids=["rows differ", "tables differ"])
async def test_on_a_shared_database_the_old_program_serves_until_it_ends(
    nats_url: str, postgres_url: str, before: ReadModel
) -> None:
    """The new program makes its tables next to the live ones, and waits. The old one shows its own with new events until it ends.

    Of two processes of the new program either one takes over.
    """
    copies = copies_at(postgres_url)
    async with ledger_log(nats_url) as log, AsyncExitStack() as new:
        book = Book(log)
        await book.append_randomly(100, accounts=20, seed=1)
        async with served(log, postgres_url, before) as (old, shown):
            await old.projector.wait_for(100, 30)
            sides = [await new.enter_async_context(served(log, postgres_url, LOUD)) for _ in range(2)]
            for side, _ in sides:
                await wait_until(partial(_says, side, "is waited for, until it ends"), timeout=60)
            await book.append_randomly(20, accounts=20, seed=2)
            await old.projector.wait_for(120, 30)
            count = await shown.fetch("SELECT count(*) AS n FROM accounts WHERE id LIKE 'account-%'")
            assert count[0]["n"] > 10
            assert [side.projector.lead.held for side in (old, *(side for side, _ in sides))] == [True, False, False]
        for side, store in sides:
            await wait_until(partial(_has_reached, side, 120), timeout=60)
            assert await copies.there() == [CopyPart.OLD]
            await equals_a_fold(log, store, LOUD, 120)
        assert sorted(side.projector.lead.held for side, _ in sides) == [False, True]


@pytest_asyncio.fixture(params=["a schema of somebody else", "no right"])
async def url_without_copies(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[str]:
    """The address of a database in which no copy can be made."""
    if request.param == "no right":
        await execute(postgres_url, "DROP ROLE IF EXISTS clerk")
        await execute(postgres_url, "CREATE ROLE clerk; GRANT CREATE ON SCHEMA public TO clerk")
        yield f"{postgres_url}&role=clerk"
        await execute(postgres_url, "DROP OWNED BY clerk; DROP ROLE clerk")
    else:
        await execute(postgres_url, "CREATE SCHEMA public__new")
        yield postgres_url


async def test_where_no_copy_can_be_made_the_old_program_is_waited_for_and_its_tables_are_changed(
    nats_url: str, url_without_copies: str
) -> None:
    """A schema of that name is somebody else's, or there is no right to make one."""
    url = url_without_copies
    async with ledger_log(nats_url) as log, AsyncExitStack() as new:
        await Book(log).append_randomly(100, accounts=20, seed=1)
        async with served(log, url, OLDER) as (old, shown):
            await old.projector.wait_for(100, 30)
            side, store = await new.enter_async_context(served(log, url, MODEL))
            await wait_until(partial(_says, side, "is waited for, until it ends"), timeout=60)
            assert (await shown.schema()).version == 2
            with pytest.raises(StoreUnavailable):
                await store.fetch("SELECT 1 AS one")
        await side.projector.wait_for(100, 30)
        assert await copies_at(url).there() == []
        await equals_a_fold(log, store, MODEL, 100)


async def test_one_whose_tables_a_newer_program_has_changed_is_not_ready(nats_url: str, postgres_url: str) -> None:
    """Also if it only stands by, and so does not write anyhow."""
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(10, accounts=5, seed=1)
        async with served(log, postgres_url, OLDER) as (leads, store), served(log, postgres_url, OLDER) as (stands_by, _):
            for side in (leads, stands_by):
                await wait_until(partial(_is_ready, side), timeout=30)
            await Migrations(store, MODEL).up()
            for side in (leads, stands_by):
                await wait_until(partial(_says, side, "run the program that made it"), timeout=30)


WIDE = Table("owners", (Column("owner"), Column("account"), Column("sequence", "integer")), key=("owner",))


def widely(commit: Commit) -> Iterable[Change]:
    for change in ledger.owner_changes(commit):
        yield Put(WIDE, (*change.row, commit.sequence)) if isinstance(change, Put) else Delete(WIDE, change.key)


DECLARED = attrs.evolve(MODEL, migrations=None)
WIDER = attrs.evolve(DECLARED, projections=(ACCOUNTS, attrs.evolve(OWNERS, tables=(WIDE,), handlers={ledger.CATEGORY: widely})))


@pytest.mark.parametrize("events", [0, 50])
async def test_tables_without_migrations_that_are_declared_otherwise_are_made_beside_the_old_ones(
    nats_url: str, database_url: str, events: int
) -> None:
    """And a process of the old program on a database that is shared is not ready then, and writes nothing."""
    async with ledger_log(nats_url) as log:
        book = Book(log)
        await book.append_randomly(events, accounts=5, seed=1)
        async with served(log, database_url, DECLARED) as (side, _):
            await side.projector.wait_for(events, 20)
            await wait_until(partial(_is_ready, side), timeout=30)
        async with served(log, database_url, WIDER) as (side, store):
            await wait_until(partial(_is_ready, side), timeout=30)
            await book.append_randomly(10, accounts=5, seed=2)
            await side.projector.wait_for(events + 10, 20)
            await equals_a_fold(log, store, WIDER, events + 10)
            if database_url.startswith("postgres"):
                async with store_at(database_url) as other:
                    with pytest.raises(MigrationError, match=r"'owners' .* is not as declared"):
                        await Migrations(other, DECLARED).pending()


async def test_a_copy_with_other_declared_tables_is_replaced(nats_url: str, database_url: str) -> None:
    async with ledger_log(nats_url) as log:
        await Book(log).append_randomly(50, accounts=5, seed=1)
        async with served(log, database_url, DECLARED) as (side, _):
            await side.projector.wait_for(50, 20)
            async with copies_at(database_url).store(CopyPart.NEW) as copy:
                await fill(copy, log, DECLARED)
        with capture_logs() as said:
            async with served(log, database_url, WIDER) as (side, store):
                await wait_until(partial(_is_ready, side), timeout=30)
                await equals_a_fold(log, store, WIDER, 50)
        assert not any("cannot be made" in line.get("state", "") for line in said)
        assert await copies_at(database_url).there() == [CopyPart.OLD]


async def _says(side: ReadSide, text: str) -> bool:
    return text in (await side.parts.health().reason() or "")


async def _is_ready(side: ReadSide) -> bool:
    return await side.parts.health().reason() is None


async def _answers(store: Store) -> bool:
    try:
        return await store.fetch_one("SELECT 1 AS one") is not None
    except StoreUnavailable:
        return False


def _has_reached(side: ReadSide, sequence: int) -> bool:
    return side.projector.position >= sequence
