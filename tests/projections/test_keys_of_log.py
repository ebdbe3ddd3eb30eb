"""An idempotency key takes effect once for ever, though the tables lose its row and the broker has forgotten its id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import Commands, Context, EventLog, KeyReused, NewCommit, NewEvent, Proposal, Unavailable
from eventlog.admin.declarations import Declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.commit import Appended
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.testing.memory import MemoryLog
from projections.keys import CommandKeys, LogKeys
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.stores.sqlite import SQLiteStore
from tests.support.log.damage import flip
from tests.support.readside.ledger import ACCOUNT, MODEL, REGISTRY, Book, Booked, Opened
from tests.support.readside.projecting import STREAM
from tests.support.readside.tables import execute

WINDOW = 0.1
"""Seconds: the shortest window of the broker."""
BRIEF = attrs.evolve(STREAM, config={**STREAM.config, "duplicate_window": int(WINDOW * 1_000_000_000)})


@attrs.frozen
class Process:
    """A process that takes commands: its tables, its index of keys."""

    log: EventLog
    commands: Commands
    keys: LogKeys
    projector: Projector
    database: str


@asynccontextmanager
async def process(url: str, database: Path) -> AsyncIterator[Process]:
    async with SQLiteStore(database) as store, Connection.open(url, name="keys") as connection:
        await apply_declarations(connection, Declarations((BRIEF,)))
        await Migrations(store, MODEL).up()
        log = JetStreamLog(connection, STREAM.name, REGISTRY)
        head = await log.head()
        keys = LogKeys(log)
        projector = Projector(log, store, MODEL, on_applied=keys.applied)
        projector.show_after(head.last)
        tasks = [asyncio.create_task(projector.run()), asyncio.create_task(keys.read(head.last))]
        try:
            yield Process(
                log, Commands(log, keys=CommandKeys(projector, store, in_log=keys)), keys, projector, f"sqlite:{database}"
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


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
    assert one.keys.missing >= 7


@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "after a restart"])
async def test_a_key_whose_row_is_lost_takes_effect_once_also_after_the_window(
    nats_url: str, tmp_path: Path, *, restarted: bool
) -> None:
    """Also for another aggregate, and for the keys of commands that share a commit."""
    database = tmp_path / "read.db"
    async with process(nats_url, database) as one:
        await book_two(one)
        assert await execute(one.database, "DELETE FROM command_keys") == 4
        await asyncio.sleep(3 * WINDOW)
        if not restarted:
            await check_once(one)
    if restarted:
        async with process(nats_url, database) as one:
            await check_once(one)


async def test_another_process_with_other_tables_knows_the_keys(nats_url: str, tmp_path: Path) -> None:
    async with process(nats_url, tmp_path / "one.db") as one, process(nats_url, tmp_path / "two.db") as two:
        await book_two(one)
        await asyncio.sleep(3 * WINDOW)
        await two.commands.execute(ACCOUNT, "c", Opened("eve"), context("new"))
        await execute(two.database, "DELETE FROM command_keys")
        await check_once(two)


async def test_a_record_that_cannot_be_read_does_not_hide_the_keys_of_others(nats_server: EmbeddedServer, tmp_path: Path) -> None:
    database = tmp_path / "read.db"
    async with process(nats_server.url, database) as one:
        await book_two(one)
        await one.commands.execute(ACCOUNT, "c", Opened("zzzzzzz"))
        await one.commands.execute(ACCOUNT, "d", Opened("eve"))
    await nats_server.stop()
    flip(nats_server.data_dir, STREAM.name, b"zzzzzzz")
    await nats_server.start()
    async with Connection.open(nats_server.url, name="keys") as connection:
        keys = LogKeys(JetStreamLog(connection, STREAM.name, REGISTRY))
        await asyncio.wait_for(keys.read(6), 20)
        found = await keys.find("key-3", 1)
        assert found is not None
        assert found.sequence == 4


async def test_before_the_log_is_read_a_key_that_the_tables_lack_is_refused() -> None:
    """Not answered from the tables alone: they may have lost it."""
    with pytest.raises(Unavailable, match="being read"):
        await LogKeys(MemoryLog(REGISTRY)).find("key", 0.01)


@given(st.lists(st.lists(st.text(max_size=3), max_size=4), max_size=30), st.integers(0, 30), st.integers(1, 8))
def test_the_index_finds_the_first_use_of_each_key(lists: list[list[str]], split: int, run: int) -> None:
    """Whichever part of the log was there at the start."""

    async def check() -> None:
        log: EventLog = MemoryLog(REGISTRY)
        book, first = Book(log), dict[str, int]()
        keys = LogKeys(log)
        for number, some in enumerate(lists):
            for key in (*some, None):
                appended = await book.append(f"a{number}", Opened("ann"), key=key)
                if key is not None:
                    first.setdefault(key, appended.sequence)
        end = (await log.head()).last
        begin = min(split, end)
        async for commits in log.follow(after=begin, until=end, batch=3):
            keys.applied(commits)
        await keys.read(begin)
        for key, sequence in first.items():
            use = await keys.find(key, 1)
            assert use is not None
            assert use.sequence == sequence
        assert await keys.find("absent", 1) is None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("projections.keys._RUN", run)
        asyncio.run(check())
