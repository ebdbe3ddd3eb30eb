"""Several processes on one Postgres: one applies, all show, and another one takes over when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import attrs
import pytest
import pytest_asyncio

from eventlog import Commit
from eventlog.commands.loading import KeyUse
from eventlog.testing.memory import MemoryLog
from projections.errors import MigrationError, NotLeading, ProjectorStopped, StoreUnavailable
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import SchemaVersion
from projections.stores.postgres import PostgresStore
from projections.stores.postgres.server import PostgresServer
from tests.support.readside.ledger import MODEL, REGISTRY, Book, Booked, Opened
from tests.support.readside.postgres import fresh_database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@attrs.define
class Replica:
    """The read side of a process: its store, its running projector, and the sequences that it has shown."""

    store: PostgresStore
    projector: Projector
    shown: list[int]
    task: asyncio.Task[None]


@asynccontextmanager
async def replica(url: str, log: MemoryLog, *, after: int = 0) -> AsyncIterator[Replica]:
    async with PostgresStore(url) as store:
        await Migrations(store, MODEL).up()
        shown: list[int] = []

        def show(commits: Sequence[Commit]) -> None:
            shown.extend(commit.sequence for commit in commits)

        projector = Projector(log, store, MODEL, on_applied=show)
        projector.show_after(after)
        task = asyncio.create_task(projector.run())
        try:
            yield Replica(store, projector, shown, task)
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest_asyncio.fixture
async def log() -> MemoryLog:
    return MemoryLog(REGISTRY)


@pytest_asyncio.fixture
async def two(postgres_url: str, log: MemoryLog) -> AsyncIterator[tuple[Replica, Replica]]:
    """The first leads."""
    async with replica(postgres_url, log) as first:
        await wait_until(lambda: first.projector.lead.held)
        async with replica(postgres_url, log) as second:
            yield first, second


async def cut(url: str) -> None:
    """End all sessions of a database."""
    connection: Any = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def equals_a_fold(log: MemoryLog, store: PostgresStore) -> None:
    async with replayed_copy(log, MODEL, until=(await log.head()).last) as fresh:
        assert await compare(store, fresh, MODEL) is None
        assert await dump(store, MODEL) == await dump(fresh, MODEL)


async def test_one_applies_and_both_show_all_of_it_in_order(two: tuple[Replica, Replica], log: MemoryLog) -> None:
    """Each wakes who waits for a sequence when the rows can be read; the one that stands by writes nothing."""
    book = Book(log)
    for number in range(30):
        appended = await book.append(f"a{number}", Opened(f"owner {number}"), Booked(number), key=f"k{number}")
        for one in reversed(two):
            await one.projector.wait_for(appended.sequence, 60)
            assert await one.store.fetch_one("SELECT balance FROM accounts WHERE id = $1", f"a{number}") == {"balance": number}
    assert [one.projector.lead.held for one in two] == [True, False]
    await wait_until(lambda: two[1].shown == list(range(1, 31)))
    assert two[0].shown == list(range(1, 31))
    keys = CommandKeys(two[1].projector, two[1].store)
    assert await keys.find(["k7"], "ledger.account.a7", 30) == {"k7": KeyUse("k7", None, "ledger.account.a7", 8)}
    with pytest.raises(NotLeading):
        await two[1].store.forget(MODEL.projections)
    await equals_a_fold(log, two[1].store)


async def test_what_was_applied_while_a_process_began_is_shown_by_it_too(postgres_url: str, log: MemoryLog) -> None:
    """Between its look at the end of the log and its first look at the tables; whether it stands by then or leads."""
    await Book(log).append_randomly(50, accounts=5, seed=1)
    async with replica(postgres_url, log) as first:
        await first.projector.wait_for(50, 60)
        async with replica(postgres_url, log, after=20) as second:
            await wait_until(partial(_has_shown, second, 30))
            assert second.shown == list(range(21, 51))
            assert not second.projector.lead.held
    async with replica(postgres_url, log, after=40) as third:
        await wait_until(partial(_has_shown, third, 10))
        assert third.shown == list(range(41, 51))
        assert third.projector.lead.held


async def test_who_stands_by_goes_on_where_the_other_ends(two: tuple[Replica, Replica], log: MemoryLog) -> None:
    """Commits that the first had applied and the second had not shown yet are also shown, each once."""
    first, second = two
    book = Book(log)
    await book.append_randomly(200, accounts=20, seed=1)
    await first.projector.wait_for(200, 60)
    first.task.cancel()
    await asyncio.wait({first.task})
    await first.store.close()
    await wait_until(lambda: second.projector.lead.held)
    await book.append_randomly(100, accounts=20, seed=2)
    await second.projector.wait_for(300, 60)
    assert second.shown == list(range(1, 301))
    await equals_a_fold(log, second.store)


async def test_sessions_that_are_cut_cost_only_time(two: tuple[Replica, Replica], log: MemoryLog, postgres_url: str) -> None:
    """The sessions of both are cut repeatedly during the work: one leads, and no commit is applied or shown twice."""
    book = Book(log)
    for part in range(1, 6):
        await book.append_randomly(300, accounts=30, seed=part)
        await cut(postgres_url)
        for one in two:
            await one.projector.wait_for(part * 300, 30)
    for one in two:
        await wait_until(partial(_has_shown, one, 1500))
        assert one.shown == list(range(1, 1501))
    assert sorted(one.projector.lead.held for one in two) == [False, True]
    await equals_a_fold(log, two[0].store)


async def test_a_postgres_that_is_killed_is_waited_for(log: MemoryLog, postgres_server: PostgresServer) -> None:
    """After kill -9 and a restart of the whole server, the next leader continues from the stored checkpoint."""
    async with fresh_database(postgres_server) as url, replica(url, log) as first, replica(url, log) as second:
        book = Book(log)
        await book.append_randomly(300, accounts=30, seed=1)
        for one in (first, second):
            await one.projector.wait_for(300, 30)
        await postgres_server.kill()
        await book.append_randomly(300, accounts=30, seed=2)
        await postgres_server.start()
        for one in (first, second):
            await one.projector.wait_for(600, 30)
            await wait_until(partial(_has_shown, one, 600))
            assert one.shown == list(range(1, 601))
        await equals_a_fold(log, second.store)


def _has_shown(one: Replica, count: int) -> bool:
    return len(one.shown) >= count


async def test_a_program_that_knows_fewer_migrations_does_not_write(postgres_url: str, log: MemoryLog) -> None:
    """One of an older version, that was left running."""
    async with PostgresStore(postgres_url) as store:
        await store.migrate("", before=SchemaVersion(0), after=SchemaVersion(9), projections=())
        with pytest.raises(ProjectorStopped, match="set the database aside") as caught:
            await Projector(log, store, MODEL).run()
        assert isinstance(caught.value.__cause__, MigrationError)


async def test_a_schema_is_a_database_of_its_own(postgres_url: str, log: MemoryLog) -> None:
    """Two read models may share a database: each has its tables, its lock, its news."""
    connection: Any = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE SCHEMA other")
    await connection.close()
    await Book(log).append("a", Opened("ann"))
    async with replica(postgres_url, log) as here, replica(f"{postgres_url}&search_path=other", log) as there:
        for one in (here, there):
            await one.projector.wait_for(1, 60)
            assert one.projector.lead.held
    with pytest.raises(StoreUnavailable, match="there is no schema"):
        await PostgresStore(f"{postgres_url}&search_path=missing").open()
