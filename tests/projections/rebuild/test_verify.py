"""The auditor is tested itself: whatever is changed in a read model, comparing it with a fold finds it (I3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from eventlog.testing.memory import MemoryLog
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import Verification, compare, dump, replayed_copy, verify
from projections.store import Snapshot, Store
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.support.readside.ledger import MODEL, REGISTRY, Book, Booked, Opened
from tests.support.readside.postgres import either_database
from tests.support.readside.tables import execute

COMMITS = 300


@pytest_asyncio.fixture
async def log() -> MemoryLog:
    log = MemoryLog(REGISTRY)
    book = Book(log)
    await book.append_randomly(COMMITS - 2, accounts=30, seed=5)
    await book.append("zed", Opened("zoë"), key="key-1", fingerprint="f")
    await book.append("zed", Booked(4))
    return log


async def project(log: MemoryLog, store: Store) -> None:
    await Migrations(store, MODEL).up()
    await Projector(log, store, MODEL, batch=17).run(until=COMMITS)


@pytest_asyncio.fixture
async def live(log: MemoryLog, tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(tmp_path / "live.db") as store:
        await project(log, store)
        yield store


@pytest_asyncio.fixture
async def either(log: MemoryLog, either_store: SQLiteStore | PostgresStore) -> SQLiteStore | PostgresStore:
    await project(log, either_store)
    return either_store


async def test_equal_models_have_equal_digests_and_no_difference(log: MemoryLog, either: Store) -> None:
    live = either
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        assert await compare(live, fresh, MODEL) is None
        ours = await dump(live, MODEL)
        assert ours == await dump(fresh, MODEL)
        assert set(ours.tables) == {"accounts", "entries", "owners", "command_keys"}
        assert ours.tables["command_keys"].rows == 1
        assert ours.applied == dict.fromkeys(("accounts", "owners", "command_keys"), COMMITS)
    async with replayed_copy(log, MODEL, until=COMMITS - 1) as older:
        assert (await dump(older, MODEL)).digest != ours.digest


@either_database(pytest.mark.long)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE accounts SET balance = balance + 1 WHERE id = 'zed'", "accounts 'zed': balance is 5, should be 4"),
        ("UPDATE accounts SET frozen = NOT frozen WHERE id = 'zed'", "accounts 'zed': frozen is True, should be False"),
        ("UPDATE entries SET rate = rate + 1e-12 WHERE account = 'zed'", "entries 'zed', 1: rate is 1.333"),
        ("UPDATE entries SET memo = '' WHERE account = 'zed'", "entries 'zed', 1: memo is '', should be None"),
        ("UPDATE accounts SET tags = '{}' WHERE id = 'zed'", "accounts 'zed': tags is {}, should be {'kind': 'current'}"),
        ("DELETE FROM entries WHERE account = 'zed'", "entries 'zed', 1: is missing"),
        ("DELETE FROM owners", "owners 'owner of account-0': is missing"),
        ("INSERT INTO owners VALUES ('aaa', 'x')", "owners 'aaa': should not be there"),
        ("INSERT INTO owners VALUES ('zzz', 'x')", "owners 'zzz': should not be there"),
        ("INSERT INTO owners VALUES ('owner of account-00', 'x')", "owners 'owner of account-00': should not be there"),
        ("UPDATE command_keys SET sequence = 7", "command_keys 'key-1', 7: should not be there"),
        ("DELETE FROM command_keys", "command_keys 'key-1', 299: is missing"),
        ("UPDATE projection_checkpoints SET applied = 299", "checkpoints 'accounts': applied is 299, should be 300"),
    ],
)
async def test_a_change_of_any_kind_is_found(log: MemoryLog, either: Store, database_url: str, change: str, told: str) -> None:
    before = await dump(either, MODEL)
    assert await execute(database_url, change)
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        difference = await compare(either, fresh, MODEL)
        assert told in str(difference)
    assert (await dump(either, MODEL)).digest != before.digest


@either_database(pytest.mark.long)
@pytest.mark.parametrize(
    ("live", "fresh", "told"),
    [
        ('{"is": 1}', '{"is": true}', "accounts 'zed': tags is {'is': 1}, should be {'is': True}"),
        ('{"in": [{}, [0]]}', '{"in": [{}, [false]]}', "tags is {'in': [{}, [0]]}, should be {'in': [{}, [False]]}"),
        ("true", "1", "tags is True, should be 1"),
        ('{"is": null}', "{}", "tags is {'is': None}, should be {}"),
        ('{"is": 1.0, "a": [2]}', '{"a": [2.0], "is": 1}', None),
    ],
)
async def test_truth_in_json_is_no_number(
    log: MemoryLog, either: Store, database_url: str, live: str, fresh: str, told: str | None
) -> None:
    """Though Python takes them for equal; 1 and 1.0 are one number in JSON."""
    change = "UPDATE accounts SET tags = '{}' WHERE id = 'zed'"
    await execute(database_url, change.replace("{}", live))
    async with replayed_copy(log, MODEL, until=COMMITS) as copy:
        await execute(f"sqlite:{copy.path}", change.replace("{}", fresh))
        difference = await compare(either, copy, MODEL)
        assert difference is None if told is None else told in str(difference)


async def test_a_log_that_grows_at_that_moment_has_not_lost_its_end(
    log: MemoryLog, either: SQLiteStore | PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service stores and applies a commit while a verification begins."""
    snapshot = either.snapshot

    @asynccontextmanager
    async def later() -> AsyncIterator[Snapshot]:
        await Book(log).append("yan", Opened("yann"), Booked(1))
        await Projector(log, either, MODEL).run(until=COMMITS + 1)
        async with snapshot() as taken:
            yield taken

    monkeypatch.setattr(either, "snapshot", later)
    verified = await verify(either, log, MODEL)
    assert verified == Verification(sequence=COMMITS + 1, difference=None, digest=verified.digest)


async def test_the_digest_of_the_tables_is_of_the_verified_moment(log: MemoryLog, either: SQLiteStore | PostgresStore) -> None:
    """The service stores and applies a commit while the log is folded."""

    async def meanwhile(projector: Projector, until: int) -> None:
        await Book(log).append("yan", Opened("yann"), Booked(1))
        await Projector(log, either, MODEL).run(until=COMMITS + 1)
        await projector.run(until=until)

    verified = await verify(either, log, MODEL, run=meanwhile, dumped=True)
    assert verified.sequence == COMMITS
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        assert verified.dump == await dump(fresh, MODEL)
    assert verified.dump != await dump(either, MODEL)


async def test_text_that_is_no_json_is_found(log: MemoryLog, live: SQLiteStore) -> None:
    """In SQLite, which does not look."""
    await execute(f"sqlite:{live.path}", "UPDATE accounts SET tags = '{' WHERE id = 'zed'")
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        assert "tags is '{', should be {'kind': 'current'}" in str(await compare(live, fresh, MODEL))


async def test_a_flipped_bit_in_the_file_is_found(log: MemoryLog, live: SQLiteStore) -> None:
    """Which neither a query nor SQLite's own check notices."""
    await live.close()
    data = live.path.read_bytes()
    place = data.rindex(b"owner of account-1")
    live.path.write_bytes(data[:place] + b"ovner of account-1" + data[place + 18 :])
    await live.open()
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        assert await compare(live, fresh, MODEL) is not None
        assert await dump(live, MODEL) != await dump(fresh, MODEL)


async def test_json_is_compared_by_what_it_means(log: MemoryLog, either: Store, database_url: str) -> None:
    """A store may write it in its own way."""
    before = await dump(either, MODEL)
    await execute(database_url, """UPDATE accounts SET tags = '{ "kind" : "current" }'""")
    async with replayed_copy(log, MODEL, until=COMMITS) as fresh:
        assert await compare(either, fresh, MODEL) is None
    assert await dump(either, MODEL) == before
