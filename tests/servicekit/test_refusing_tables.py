"""Tables that take no change: locked by another program, or on a full disk. Health and errors name that cause."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from eventlog import Context, Unavailable
from projections.errors import Behind, StoreUnavailable
from projections.stores.sqlite import SQLiteStore
from servicekit.read_side import CommitFrames, ReadSide, migrated
from tests.support.pace import within
from tests.support.readside.ledger import ACCOUNT, MODEL, Booked, Opened
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

DRIVER = re.compile(r"database is locked|disk is full$|canceling statement|lock timeout|SQLITE|switch to state", re.IGNORECASE)
"""Texts of the drivers."""


@asynccontextmanager
async def served(nats_url: str, database: str) -> AsyncIterator[tuple[ReadSide, Any]]:
    """A read side with one account in its tables, and its database."""
    async with ledger_log(nats_url) as log, migrated(database, MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            outcome = await side.commands.execute(ACCOUNT, "a", Opened("ann"))
            await side.acknowledge(outcome.sequence, immediate=False)
            await wait_until(lambda: healthy(side))
            yield side, store


async def healthy(side: ReadSide) -> bool:
    return await side.parts.health().reason() is None


async def check_refusals(side: ReadSide, cause: str) -> None:
    """A commit that the tables do not take makes reads and writes not ready; reads and keyed commands get the cause."""
    opened = await side.commands.execute(ACCOUNT, "b", Opened("x" * 20_000))
    health = side.parts.health()

    async def told() -> bool:
        reason = await health.reason() or ""
        return "read model: " in reason and "writes: commands with an idempotency key are refused" in reason

    with within(3):
        await wait_until(told)
    reason = await health.reason()
    assert reason is not None
    assert reason.count(cause) >= 2
    side.commands._replays._keys._timeout = 0.5  # type: ignore[union-attr]  # the time for a key, to save the time of the test
    with pytest.raises(Unavailable, match=f"is not stored.*{cause}") as refused:
        await side.commands.execute(ACCOUNT, "b", Booked(2), Context(key="k", fingerprint="f"))
    with pytest.raises(Behind, match=cause) as behind:
        await side.projector.wait_for(opened.sequence, 0.2)
    for text in (reason, str(refused.value), str(behind.value)):
        assert DRIVER.search(text) is None, text


async def check_recovery(side: ReadSide) -> None:
    """Without an operator."""
    await wait_until(lambda: healthy(side))
    assert (await side.commands.execute(ACCOUNT, "b", Booked(2), Context(key="k", fingerprint="f"))).sequence == 3


async def test_tables_that_another_program_has_locked_are_named(nats_url: str, tmp_path: Path) -> None:
    file = tmp_path / "read.db"
    async with served(nats_url, f"sqlite:{file}") as (side, _):
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await check_refusals(side, "it is locked by another program")
        await check_recovery(side)


async def test_tables_on_a_full_disk_are_named(nats_url: str, tmp_path: Path) -> None:
    async with served(nats_url, f"sqlite:{tmp_path / 'read.db'}") as (side, store):
        assert isinstance(store, SQLiteStore)
        writer = store._writer
        assert writer is not None
        writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0]}")
        await check_refusals(side, "the disk or a quota is full")
        writer.execute("PRAGMA max_page_count = 1000000")
        await check_recovery(side)


async def test_tables_that_a_session_of_postgres_has_locked_are_named(nats_url: str, postgres_url: str) -> None:
    """Also while no commit is to be applied: reads of the table are refused then."""
    async with served(nats_url, postgres_url) as (side, store):
        other: Any = await asyncpg.connect(postgres_url)
        try:
            async with other.transaction():
                table = MODEL.projections[0].tables[0].name
                await other.execute(f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE')
                with within(3):
                    reason = await side.parts.health().reason()
                assert reason is not None
                assert "database: " in reason
                assert "a table is locked by another session" in reason
                with pytest.raises(StoreUnavailable, match="a table is locked by another session"):
                    await store.check_readable([table])
                await check_refusals(side, "a table is locked by another session")
        finally:
            await other.close()
        await check_recovery(side)
