"""The lease of the projector: a process that hangs is replaced, and can do nothing when it continues."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.testing.memory import MemoryLog
from projections.errors import NotLeading, ProjectorStopped, StoreInUse
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.stores.postgres import PostgresStore, statements
from projections.stores.sqlite import SQLiteStore
from projections.stores.sqlite.files import LEASE
from tests.support.readside.ledger import MODEL, REGISTRY, Book
from tests.support.readside.projecting import assert_equals_a_fold, ledger_log, start_projector
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

WITHIN = 10.0
"""Seconds within which a leader that hangs is replaced."""
SLACK = 10.0
"""Seconds that a busy machine adds."""


@contextmanager
def other_process(nats: EmbeddedServer, database: str) -> Iterator[subprocess.Popen[bytes]]:
    """A projector on the database in another process."""
    process = start_projector(nats.url, database, 100)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    """A session of the test's own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def standing_by(url: str, log: JetStreamLog) -> AsyncIterator[tuple[PostgresStore, Projector]]:
    async with PostgresStore(url) as store:
        projector = Projector(log, store, MODEL)
        task = asyncio.create_task(projector.run())
        try:
            yield store, projector
        finally:
            task.cancel()
            await asyncio.wait({task})


async def leads(connection: Any, pid: int) -> bool:
    """Whether that process has the lease, and has come to the end of the log."""
    there = await connection.fetchval("SELECT to_regclass('projection_lease') IS NOT NULL")
    return there and bool(await connection.fetchval("SELECT holder LIKE $1 FROM projection_lease", f"process {pid} on %"))


@pytest.mark.parametrize(
    "busy", [pytest.param(False, id="idle"), pytest.param(True, id="in the middle of its work", marks=pytest.mark.long)]
)
async def test_a_leader_that_hangs_is_replaced_and_changes_nothing_when_it_goes_on(
    nats_server: EmbeddedServer, postgres_url: str, busy: bool
) -> None:
    async with ledger_log(nats_server.url) as log, session(postgres_url) as watching:
        book = Book(log)
        await book.append_randomly(100, accounts=10, seed=1)
        with other_process(nats_server, postgres_url) as first:
            await wait_until(lambda: leads(watching, first.pid))
            async with standing_by(postgres_url, log) as (store, second):
                await second.wait_for(100, 60)
                token = await watching.fetchval("SELECT token FROM projection_lease")
                if busy:
                    await book.append_randomly(3000, accounts=30, seed=2)
                os.kill(first.pid, signal.SIGSTOP)
                stopped = time.monotonic()
                await book.append_randomly(50, accounts=10, seed=3)
                await wait_until(lambda: second.lead.held, timeout=WITHIN + SLACK)
                print(f"replaced after {time.monotonic() - stopped:.1f} s")
                head = await log.head()
                await second.wait_for(head.last, 60)
                assert await watching.fetchval("SELECT token FROM projection_lease") == token + 1
                os.kill(first.pid, signal.SIGCONT)
                await book.append_randomly(200, accounts=10, seed=4)
                head = await log.head()
                await second.wait_for(head.last, 60)
                assert second.lead.held
                assert await watching.fetchval("SELECT token FROM projection_lease") == token + 1
                await assert_equals_a_fold(log, store)


async def test_a_checkpoint_of_an_older_token_is_refused_with_its_rows(postgres_url: str) -> None:
    async with PostgresStore(postgres_url) as store, session(postgres_url) as other:
        await Migrations(store, MODEL).up()
        election = store.election
        assert election is not None
        assert await election.take()
        old = election.token
        await statements.taken(other)

        async def write_as_before() -> None:
            async with other.transaction():
                await other.execute("INSERT INTO command_keys VALUES ('k', 1, NULL, 's')")
                await statements.write_checkpoints(other, [], "channel", old)

        with pytest.raises(NotLeading, match="wrote no row"):
            await write_as_before()
        assert await other.fetchval("SELECT count(*) FROM command_keys") == 0


_WAITS = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'accounts'::regclass"


async def test_the_lease_can_be_renewed_while_a_leader_empties_tables(postgres_url: str) -> None:
    """A leader whose heartbeats wait would lose its session to a standby."""
    async with PostgresStore(postgres_url) as store, session(postgres_url) as other, session(postgres_url) as reader:
        await Migrations(store, MODEL).up()
        election = store.election
        assert election is not None
        assert await election.take()
        async with reader.transaction():
            await reader.execute("LOCK TABLE accounts IN SHARE MODE")
            emptying = asyncio.create_task(store.forget(MODEL.projections))
            await wait_until(lambda: store.fetch_one(_WAITS))
            assert await statements.renew(other, election.token)
        await emptying


async def test_a_healthy_leader_is_not_replaced_for_being_idle(nats_server: EmbeddedServer, postgres_url: str) -> None:
    async with ledger_log(nats_server.url) as log, session(postgres_url) as watching:
        with other_process(nats_server, postgres_url) as first:
            await wait_until(lambda: leads(watching, first.pid))
            token, until = await watching.fetchrow("SELECT token, until FROM projection_lease")
            async with standing_by(postgres_url, log) as (_, second):

                async def renewed_for_longer_than_a_lease() -> bool:
                    sql = "SELECT until > $1::timestamptz + make_interval(secs => $2) FROM projection_lease"
                    return bool(await watching.fetchval(sql, until, statements.SECONDS + 1))

                await wait_until(renewed_for_longer_than_a_lease, timeout=60, every=0.1)
                assert not second.lead.held
            assert await watching.fetchval("SELECT token FROM projection_lease") == token


async def test_a_process_that_hangs_loses_its_sqlite_file_to_one_that_waits(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    """A healthy owner keeps it; the killed one changes nothing after SIGCONT."""
    file = tmp_path / "read.db"
    async with ledger_log(nats_server.url) as log:
        book = Book(log)
        await book.append_randomly(100, accounts=10, seed=1)
        with other_process(nats_server, f"sqlite:{file}") as first:
            await wait_until(lambda: reached(file) == 100)
            with pytest.raises(StoreInUse, match=f"process {first.pid}"):
                await SQLiteStore(file).open()
            waiting = SQLiteStore(file, patience=60)
            opening = asyncio.create_task(waiting.open())
            assert not (await asyncio.wait({opening}, timeout=LEASE + 1))[0], "who is healthy keeps it"
            os.kill(first.pid, signal.SIGSTOP)
            stopped = time.monotonic()
            await book.append_randomly(50, accounts=10, seed=2)
            async with asyncio.timeout(WITHIN + SLACK):
                await opening
            print(f"replaced after {time.monotonic() - stopped:.1f} s")
            os.kill(first.pid, signal.SIGCONT)
            try:
                await Projector(log, waiting, MODEL).run(until=150)
                await assert_equals_a_fold(log, waiting)
            finally:
                await waiting.close()


async def test_who_lost_a_sqlite_file_without_noticing_changes_nothing(tmp_path: Path) -> None:
    """Its lock file was removed, say, and another process has opened the database since."""
    file = tmp_path / "read.db"
    log = MemoryLog(REGISTRY)
    await Book(log).append_randomly(20, accounts=3, seed=1)
    async with SQLiteStore(file) as first:
        await Migrations(first, MODEL).up()
        await Projector(log, first, MODEL).run(until=10)
        (tmp_path / "read.db.lock").unlink()
        async with SQLiteStore(file) as second:
            with pytest.raises(ProjectorStopped, match="writes to the database by now: this process wrote no row"):
                await Projector(log, first, MODEL).run(until=20)
            assert {one.sequence for one in (await second.checkpoints()).values()} == {10}
            await Projector(log, second, MODEL).run(until=20)
            assert {one.sequence for one in (await second.checkpoints()).values()} == {20}


def reached(file: Path) -> int:
    """The lowest checkpoint in a database that another process writes."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            (lowest,) = connection.execute("SELECT min(sequence) FROM projection_checkpoints").fetchone()
    except sqlite3.OperationalError:
        return 0
    return lowest or 0
