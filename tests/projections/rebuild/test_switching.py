"""Live tables and a copy change places in Postgres: the view of other sessions, and the objects that are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from eventlog.testing.memory import MemoryLog
from projections.errors import CopyRefused, NotLeading, StoreInUse
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.rebuild import confirm, fill, switch
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import CopyPart
from projections.stores.postgres import PostgresCopies, PostgresReader, PostgresStore
from projections.stores.postgres import store as postgres_store
from tests.support.readside.ledger import MODEL, REGISTRY, Book, Booked, Opened
from tests.support.readside.tables import change, execute
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

_VACUUMED = """
SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = 'accounts'::regclass AND mode = 'ShareUpdateExclusiveLock' AND backend_type = 'autovacuum worker'
"""
NAMES = [projection.name for projection in MODEL.projections]


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(REGISTRY)


@pytest_asyncio.fixture
async def filled(log: MemoryLog, postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Accounts up to sequence 200 in the live tables, the same in a copy that is verified."""
    await Book(log).append_randomly(200, accounts=20, seed=1)
    async with PostgresStore(postgres_url) as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=200)
        await make_copy(log, postgres_url)
        yield store


async def make_copy(log: MemoryLog, url: str) -> None:
    async with PostgresCopies(url).store(CopyPart.NEW) as copy:
        await fill(copy, log, MODEL)
        await confirm(copy, log, MODEL)


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    connection: Any = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def projecting(log: MemoryLog, store: PostgresStore) -> AsyncIterator[Projector]:
    projector = Projector(log, store, MODEL)
    task = asyncio.create_task(projector.run())
    try:
        yield projector
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_sessions_everywhere_go_on_and_no_statement_sees_some_of_these_and_some_of_those(
    log: MemoryLog, postgres_url: str, filled: PostgresStore
) -> None:
    """Prepared statements over both tables, on replicas that stand by and on readers; they wait, and wake as ever."""
    for sql in (
        "UPDATE accounts SET balance = -balance - 1000000 WHERE id = (SELECT account FROM owners LIMIT 1)",
        "UPDATE owners SET account = 'nobody' WHERE owner = (SELECT owner FROM owners LIMIT 1)",
    ):
        await execute(postgres_url, "ALTER TABLE accounts DROP CONSTRAINT IF EXISTS accounts_balance_check")
        await change(postgres_url, sql)
    wrong = """
        SELECT (SELECT count(*) FROM accounts WHERE balance < 0) AS one,
            (SELECT count(*) FROM owners WHERE account = 'nobody') AS other,
            (SELECT max(sequence) FROM projection_checkpoints) AS sequence
    """
    seen: set[int] = set()
    done = False

    async def read(reader: PostgresReader) -> None:
        last = 0
        while not done:
            row = await reader.fetch_one(wrong)
            assert row is not None
            assert row["one"] == row["other"]
            assert row["sequence"] >= last
            last = row["sequence"]
            seen.add(row["one"])
            assert len(await reader.fetch("SELECT * FROM accounts AS a JOIN owners AS o USING (owner)")) > 10

    async with (
        projecting(log, filled) as leading,
        PostgresStore(postgres_url) as beside,
        projecting(log, beside) as standing_by,
        PostgresReader(postgres_url) as reader,
    ):
        await wait_until(lambda: leading.lead.held)
        tasks = [asyncio.create_task(read(one)) for one in (filled, beside, beside, reader, reader)]
        for number, part in enumerate((CopyPart.NEW, CopyPart.OLD), start=1):
            await switch(leading, filled, PostgresCopies(postgres_url), log, MODEL, part)
            appended = await Book(log).append(f"after-{number}", Opened(f"after {number}"), Booked(7))
            for projector, store in ((leading, filled), (standing_by, beside)):
                await projector.wait_for(appended.sequence, 30)
                assert await store.fetch_one("SELECT balance FROM accounts WHERE id = $1", f"after-{number}") == {"balance": 7}
            assert [leading.lead.held, standing_by.lead.held] == [True, False]
        done = True
        await asyncio.gather(*tasks)
    assert seen == {0, 1}


async def test_only_who_leads_changes_places(log: MemoryLog, postgres_url: str, filled: PostgresStore) -> None:
    """A process that was cut off and no longer leads cannot write to the live tables or to the copy."""
    async with PostgresStore(postgres_url) as other:
        with pytest.raises(NotLeading):
            await other.switch(NAMES)
        late = Projector(log, filled, MODEL)
        await late.load()
        assert filled.election is not None
        await filled.election.release()
        await switch(Projector(log, other, MODEL), other, PostgresCopies(postgres_url), log, MODEL)
        with pytest.raises(NotLeading):
            await switch(late, filled, PostgresCopies(postgres_url), log, MODEL)
        with pytest.raises(NotLeading):
            await filled.forget(MODEL.projections)
        await Book(log).append("more", Opened("more"))
        await Projector(log, other, MODEL).run(until=201)
        async with replayed_copy(log, MODEL, until=201) as fresh:
            assert await compare(filled, fresh, MODEL) is None
            assert await dump(filled, MODEL) == await dump(fresh, MODEL)


async def test_a_long_reader_is_waited_for_and_then_left_alone(
    postgres_url: str, filled: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others continue to read. A refused switch has changed nothing, and works when the reader has ended."""
    monkeypatch.setattr(postgres_store, "_SWITCH_PATIENCE", 0.3)
    async with filled.snapshot() as snapshot:
        with pytest.raises(StoreInUse, match="are being read"):
            await filled.switch(NAMES)
        assert len(await filled.fetch("SELECT * FROM accounts")) > 10
        assert {c.sequence for c in (await snapshot.checkpoints()).values()} == {200}
    async with PostgresCopies(postgres_url).store(CopyPart.NEW):
        with pytest.raises(StoreInUse):
            await filled.switch(NAMES)
    assert await PostgresCopies(postgres_url).there() == [CopyPart.NEW]
    monkeypatch.setattr(postgres_store, "_SWITCH_PATIENCE", 30.0)
    await filled.switch(NAMES)
    assert await PostgresCopies(postgres_url).there() == [CopyPart.OLD]


async def test_the_tables_change_places_while_postgres_vacuums_them(
    postgres_url: str, filled: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autovacuum of a large table takes minutes. It gives way to a session that waits for it long enough."""
    monkeypatch.setattr(postgres_store, "_SWITCH_PATIENCE", 0.3)
    slowly = "autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1"
    at_once = "autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0"
    await execute(postgres_url, "ALTER SYSTEM SET autovacuum_naptime = '1s'")
    try:
        await execute(postgres_url, f"SELECT pg_reload_conf(); ALTER TABLE accounts SET ({slowly}, {at_once})")
        async with session(postgres_url) as onlooker:
            for _ in range(600):
                await onlooker.execute("UPDATE accounts SET balance = balance")
            await wait_until(lambda: onlooker.fetchval(_VACUUMED), timeout=60, every=0.1)
            await filled.switch(NAMES)
    finally:
        await execute(postgres_url, "ALTER SYSTEM RESET autovacuum_naptime")
        await execute(postgres_url, "SELECT pg_reload_conf()")
    assert await PostgresCopies(postgres_url).there() == [CopyPart.OLD]


async def test_a_copy_that_is_behind_the_live_tables_is_refused(log: MemoryLog, postgres_url: str, filled: PostgresStore) -> None:
    await Book(log).append("more", Opened("more"))
    await Projector(log, filled, MODEL).run(until=201)
    with pytest.raises(CopyRefused, match="is at sequence 200, the live one at 201"):
        await filled.switch(NAMES)
    assert await PostgresCopies(postgres_url).there() == [CopyPart.NEW]


async def test_rights_come_along_and_what_is_not_ours_stays(log: MemoryLog, postgres_url: str, filled: PostgresStore) -> None:
    """A role keeps its right to read, and tables of others stay. A view of the old tables is kept with them."""
    copies = PostgresCopies(postgres_url)
    await execute(postgres_url, "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
    await execute(postgres_url, "DROP ROLE IF EXISTS onlooker")
    await execute(postgres_url, "CREATE ROLE onlooker; GRANT SELECT ON accounts TO onlooker; GRANT SELECT ON owners TO PUBLIC")
    try:
        async with session(postgres_url) as onlooker:
            await onlooker.execute("SET ROLE onlooker")
            await filled.switch(NAMES)
            for sql in ("SELECT count(*) FROM accounts", "SELECT count(*) FROM owners"):
                assert await onlooker.fetchval(sql) > 10
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await onlooker.fetchval("SELECT count(*) FROM entries")
        assert await filled.fetch("SELECT text FROM notes") == [{"text": "mine"}]
        await execute(postgres_url, "CREATE VIEW rich AS SELECT id FROM public__old.accounts WHERE balance > 0")
        await make_copy(log, postgres_url)
        with pytest.raises(CopyRefused, match=r"view rich depends on table public__old\.accounts"):
            await filled.switch(NAMES)
        with pytest.raises(CopyRefused, match="view rich"):
            await copies.discard(CopyPart.OLD)
        assert set(await copies.there()) == {CopyPart.NEW, CopyPart.OLD}
        await execute(postgres_url, "DROP VIEW rich")
        await filled.switch(NAMES)
        assert await copies.there() == [CopyPart.OLD]
    finally:
        await execute(postgres_url, "DROP OWNED BY onlooker; DROP ROLE onlooker")


async def test_a_schema_of_somebody_else_is_left_alone(postgres_url: str, filled: PostgresStore) -> None:
    """The schema has the name of a copy or of the old tables. It is not treated as a copy, removed or filled."""
    copies = PostgresCopies(postgres_url)
    await execute(postgres_url, "CREATE SCHEMA public__old; CREATE TABLE public__old.mine (id TEXT)")
    assert await copies.there() == [CopyPart.NEW]
    await copies.discard(CopyPart.OLD)
    for refused in (filled.switch(NAMES), filled.switch(NAMES, CopyPart.OLD), copies.reader(CopyPart.OLD).open()):
        with pytest.raises(CopyRefused):
            await refused
    await copies.discard(CopyPart.NEW)
    await execute(postgres_url, "ALTER SCHEMA public__old RENAME TO public__new")
    with pytest.raises(CopyRefused, match="not made"):
        await copies.store(CopyPart.NEW).open()
    assert await execute(postgres_url, "INSERT INTO public__new.mine VALUES ('still')") == 1
