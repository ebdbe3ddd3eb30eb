"""An idempotency key takes effect once for ever, though the broker has forgotten its id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from eventlog import Commands, Context, EventLog, KeyReused, NewCommit, NewEvent
from eventlog.admin.declarations import Declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.commit import Appended, Proposal
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import verify
from projections.stores.sqlite import SQLiteReader, SQLiteStore
from tests.support.readside.ledger import ACCOUNT, MODEL, REGISTRY, Booked, Opened
from tests.support.readside.projecting import STREAM
from tests.support.readside.tables import execute

WINDOW = 0.1
"""Seconds: the shortest window of the broker."""
BRIEF = attrs.evolve(STREAM, config={**STREAM.config, "duplicate_window": int(WINDOW * 1_000_000_000)})


@attrs.frozen
class Process:
    """A process that takes commands: its tables."""

    log: EventLog
    commands: Commands
    projector: Projector


@asynccontextmanager
async def process(url: str, database: Path) -> AsyncIterator[Process]:
    async with SQLiteStore(database) as store, Connection.open(url, name="keys") as connection:
        await apply_declarations(connection, Declarations((BRIEF,)))
        await Migrations(store, MODEL).up()
        log = JetStreamLog(connection, STREAM.name, REGISTRY)
        projector = Projector(log, store, MODEL)
        running = asyncio.create_task(projector.run())
        try:
            yield Process(log, Commands(log, keys=CommandKeys(projector, store)), projector)
        finally:
            running.cancel()
            await asyncio.wait({running})


def context(key: str, request: str = "same") -> Context:
    return Context(key=key, fingerprint=request)


async def book_two(one: Process) -> None:
    await one.commands.execute(ACCOUNT, "a", Opened("ann"))
    await one.commands.execute(ACCOUNT, "b", Opened("bob"))
    assert (await one.commands.execute(ACCOUNT, "a", Booked(20), context("key"))).sequence == 3
    assert (await append_with_three_keys(one.log)).sequence == 4
    await one.projector.wait_for(4, 20)


async def append_with_three_keys(log: EventLog) -> Appended:
    """Book on "b" as programs of version 1 did, which stored several commands with keys in one commit."""
    last = await log.last(ACCOUNT.aggregate("b"))
    assert last is not None
    events = [Booked(number) for number in range(1, 4)]
    commit = NewCommit(
        id="shared",
        at=last.at,
        events=tuple(NewEvent(event, context(f"key-{event.amount}")) for event in events),
        state=ACCOUNT.fold(events, last.state),
    )
    proposal = Proposal(aggregate=last.aggregate, expected=last.sequence, commit=commit, prev=last.digest, key="key-1")
    return await log.append(proposal)


async def check_once(one: Process) -> None:
    again = await one.commands.execute(ACCOUNT, "a", Booked(20), context("key"))
    assert (again.sequence, again.replayed, again.state.balance) == (3, True, 20)
    with pytest.raises(KeyReused):
        await one.commands.execute(ACCOUNT, "b", Booked(20), context("key"))
    with pytest.raises(KeyReused):
        await one.commands.execute(ACCOUNT, "a", Booked(21), context("key", "other"))
    for number in (2, 3):  # keys of commands that shared a commit
        again = await one.commands.execute(ACCOUNT, "b", Booked(number), context(f"key-{number}"))
        assert (again.sequence, again.replayed) == (4, True)
        with pytest.raises(KeyReused):
            await one.commands.execute(ACCOUNT, "a", Booked(number), context(f"key-{number}"))


@pytest.mark.real
@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "after a restart"])
async def test_a_key_takes_effect_once_also_after_the_window(nats_url: str, tmp_path: Path, *, restarted: bool) -> None:
    """Also for another aggregate, and for the keys of commands that share a commit."""
    database = tmp_path / "read.db"
    async with process(nats_url, database) as one:
        await book_two(one)
        await asyncio.sleep(3 * WINDOW)
        if not restarted:
            await check_once(one)
    if restarted:
        async with process(nats_url, database) as one:
            await check_once(one)


@pytest.mark.real
async def test_another_process_with_other_tables_knows_the_keys(nats_url: str, tmp_path: Path) -> None:
    async with process(nats_url, tmp_path / "one.db") as one:
        await book_two(one)
        await asyncio.sleep(3 * WINDOW)
        async with process(nats_url, tmp_path / "two.db") as two:
            with pytest.raises(KeyReused):  # also while its tables are empty, and for an aggregate that has no commit
                await two.commands.execute(ACCOUNT, "new", Opened("eve"), context("key"))
            await check_once(two)


@pytest.mark.real
async def test_a_key_whose_row_is_lost_is_named_by_a_verification(nats_url: str, tmp_path: Path) -> None:
    """The table of keys is compared as each other table of the read model."""
    database = tmp_path / "read.db"
    async with process(nats_url, database) as one:
        await book_two(one)
    assert await execute(f"sqlite:{database}", "DELETE FROM command_keys WHERE key = 'key'") == 1
    async with Connection.open(nats_url, name="keys") as connection, SQLiteReader(database) as reader:
        found = await verify(reader, JetStreamLog(connection, STREAM.name, REGISTRY), MODEL)
    assert str(found.difference) == "command_keys 'key', 3: is missing"
