"""Damage to the file of the SQLite store, and the reports of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from projections.errors import NotLeading, ProjectionError, RowRefused, StoreDamaged, StoreInUse, StoreUnavailable
from projections.model import Put
from projections.store import CheckpointOutcome, CopyPart, SchemaVersion
from projections.stores.sqlite import SQLiteReader, SQLiteStore, connection, statements
from projections.stores.sqlite.connection import LogCopier
from projections.stores.sqlite.files import LONG_LEASE, LockOwner
from projections.stores.sqlite.store import SQLiteCopies
from tests.support import ROOT
from tests.support.readside.conformance import MAP, PEOPLE, PLACES, checkpoint, person, step
from tests.support.readside.copying import copied_whole

TABLES = "CREATE TABLE people (id TEXT PRIMARY KEY, age INTEGER, height REAL, awake INTEGER, born TEXT, extra TEXT) STRICT;"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "read models" / "ü?.db"


@pytest_asyncio.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(path, patience=0, write_timeout=0.05) as store:
        await store.migrate(TABLES, before=SchemaVersion(0), after=SchemaVersion(1), projections=())
        yield store


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


async def count(store: SQLiteReader) -> int:
    row = await store.fetch_one("SELECT count(*) AS n FROM people")
    assert row is not None
    return int(row["n"])


async def fill(store: SQLiteStore, rows: int = 2000) -> None:
    await store.advance([step(0, 1, *(person(f"{n:05d}", n, extra="x" * 200) for n in range(rows)))])


async def test_files_of_a_database_are_private_with_any_umask(tmp_path: Path) -> None:
    """The live file, its companions, a copy, the file that names the live one, and one that was set aside."""
    seen = set[str]()

    def look() -> None:
        files = [file for file in tmp_path.iterdir() if file.is_file()]
        seen.update(file.name for file in files)
        assert [file.name for file in files if file.stat().st_mode & 0o077] == []

    path, before = tmp_path / "read.db", os.umask(0o022)
    try:
        async with SQLiteStore(path) as store:
            await store.migrate(TABLES, before=SchemaVersion(0), after=SchemaVersion(1), projections=())
            async with SQLiteCopies(path).store(CopyPart.NEW):
                look()
            look()
            await store.switch([])
            look()
        look()
        await SQLiteStore(path).quarantine()
        look()
    finally:
        os.umask(before)
    assert {"read.db", "read.db-wal", "read.db-shm", "read.db.lock", "read.db.1", "read.db.live"} <= seen
    assert any(".damaged-" in name for name in seen)


async def test_a_full_disk_writes_nothing_and_is_over_when_it_is_over(store: SQLiteStore) -> None:
    """F10: SQLITE_FULL is StoreUnavailable, rows and checkpoint stay as they were, and the next try works."""
    await fill(store)
    writer = store._writer
    assert writer is not None
    await copied_whole(store)
    writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0]}")
    more = [step(1, 2, *(person(f"more-{n}", n, extra="x" * 200) for n in range(2000)))]
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="full"):
            await store.advance(more)
        assert await count(store) == 2000
        assert await store.checkpoints() == {"visitors": checkpoint(1)}
    writer.execute("PRAGMA max_page_count = 1000000")
    assert await store.advance(more) is CheckpointOutcome.STORED
    assert await count(store) == 4000


async def test_rows_without_their_checkpoint_are_not_kept(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a crash between the two: one transaction has both."""

    def crash(*_: object) -> None:
        raise sqlite3.OperationalError("the process ends here")

    with monkeypatch.context() as patch:
        patch.setattr(statements, "write_checkpoints", crash)
        with pytest.raises(ProjectionError):
            await store.advance([step(0, 1, person("ann"))])
    assert await count(store) == 0
    assert await store.checkpoints() == {}
    assert await store.advance([step(0, 1, person("ann"))]) is CheckpointOutcome.STORED


async def test_a_lock_of_another_program_is_waited_for_and_then_said(store: SQLiteStore) -> None:
    """Somebody looks into the file with a tool and leaves a transaction open."""
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.advance([step(0, 1, person("ann"))])
    assert await count(store) == 0
    other.execute("ROLLBACK")
    other.close()
    assert await store.advance([step(0, 1, person("ann"))]) is CheckpointOutcome.STORED


async def test_reads_go_on_while_a_transaction_is_open(store: SQLiteStore) -> None:
    """Readers and the writer do not wait for each other, and a reader sees whole transactions only."""
    await fill(store)
    writer = store._writer
    assert writer is not None
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM people")
    assert await count(store) == 2000
    writer.execute("COMMIT")
    assert await count(store) == 0


async def test_the_second_process_on_a_file_is_refused_by_name(store: SQLiteStore) -> None:
    """And one in the same process too; when the first lets go the second may."""
    second = SQLiteStore(store.path, patience=0)
    with pytest.raises(StoreInUse, match=f"process {os.getpid()}:"):
        await second.open()
    await store.close()
    async with second:
        assert await count(second) == 0


async def test_a_batch_notices_a_checkpoint_that_another_program_has_moved(store: SQLiteStore) -> None:
    """And one that was moved back in vain, and one that was removed. Between batches the store reads no checkpoint."""
    steps = [step(number, number + 1, person(f"p{number}")) for number in range(3)]
    assert await store.advance([steps[0]]) is CheckpointOutcome.STORED
    assert await store.advance([steps[1]]) is CheckpointOutcome.STORED
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("UPDATE projection_checkpoints SET sequence = 7, applied = 7")
    assert await store.advance([steps[2]]) is CheckpointOutcome.MISMATCH
    assert await store.advance([steps[2]]) is CheckpointOutcome.MISMATCH
    assert await count(store) == 2
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("UPDATE projection_checkpoints SET sequence = 2, applied = 2")
    assert await store.advance([steps[2]]) is CheckpointOutcome.STORED
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("DELETE FROM projection_checkpoints")
    assert await store.advance([step(3, 4, person("p3"))]) is CheckpointOutcome.MISMATCH
    assert await count(store) == 3


async def test_a_refused_batch_moves_no_checkpoint_in_memory(store: SQLiteStore) -> None:
    assert await store.advance([step(0, 1, person("p0"))]) is CheckpointOutcome.STORED
    with pytest.raises(RowRefused):
        await store.advance([step(1, 2, person("p1", 10**30))])
    assert await store.advance([step(1, 2, person("p1"))]) is CheckpointOutcome.STORED
    assert await count(store) == 2


async def test_the_writer_of_before_writes_nothing_once_another_one_has_the_file(store: SQLiteStore) -> None:
    """Also if the lock file was removed in between."""
    assert await store.advance([step(0, 1, person("p0"))]) is CheckpointOutcome.STORED
    for lock in store.path.parent.glob("*.lock*"):
        lock.unlink()
    async with SQLiteStore(store.path, patience=0) as second:
        with pytest.raises(NotLeading, match="wrote no row"):
            await store.advance([step(1, 2, person("p1"))])
        assert await second.advance([step(1, 2, person("p2"))]) is CheckpointOutcome.STORED
        with pytest.raises(NotLeading):
            await store.advance([step(2, 3, person("p3"))])
    assert await count(store) == 2


async def test_the_state_is_another_one_if_another_program_has_written(store: SQLiteStore) -> None:
    before = store.state()
    with closing(sqlite3.connect(store.path)) as other, other:
        assert store.state() == before is not None
        other.execute("INSERT INTO people (id, age) VALUES ('other', 1)")
    assert store.state() != before


@pytest.mark.real
async def test_a_killed_owner_leaves_no_lock_behind(path: Path) -> None:
    """kill -9 with a transaction half written: the file opens, without a trace of the half."""
    program = f"""
import asyncio, pathlib, sys
from projections.stores.sqlite import SQLiteStore
from projections.store import SchemaVersion
from tests.support.readside.conformance import person, step
async def main():
    store = SQLiteStore(pathlib.Path({str(path)!r}))
    await store.open()
    await store.migrate({TABLES!r}, before=SchemaVersion(0), after=SchemaVersion(1), projections=())
    store._copier._copy_at = float("inf")
    await store.advance([step(0, 1, person("ann"))])
    store._writer.execute("BEGIN IMMEDIATE")
    store._writer.executemany("INSERT INTO people (id) VALUES (?)", [(str(n),) for n in range(100_000)])
    print("ready", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen(  # noqa: ASYNC220 - started, not waited for
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(StoreInUse, match=f"process {process.pid}:"):
            await SQLiteStore(path, patience=0).open()
        process.send_signal(signal.SIGKILL)
        process.wait()
    async with SQLiteReader(path) as reader:
        assert await count(reader) == 1
    async with SQLiteStore(path, patience=0) as store:
        assert await count(store) == 1
        assert await store.checkpoints() == {"visitors": checkpoint(1)}


async def test_a_look_at_an_owner_that_ends_during_it_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = LockOwner(os.getpid(), psutil.Process().create_time())

    def ended(process: psutil.Process) -> str:
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "status", ended)
    assert owner.lease() == LONG_LEASE


async def test_a_reader_sees_what_the_service_writes(store: SQLiteStore) -> None:
    """The reader runs next to the service, without its lock, and cannot write."""
    async with SQLiteReader(store.path) as reader:
        await store.advance([step(0, 1, person("ann"))])
        assert await reader.checkpoints() == {"visitors": checkpoint(1)}
        assert await count(reader) == 1
        with pytest.raises(StoreUnavailable, match="may not be written"):
            await reader.fetch("DELETE FROM people RETURNING id")
    await store.close()
    async with SQLiteReader(store.path) as reader, reader.snapshot() as snapshot:
        assert await count(reader) == 1
        assert [row async for rows in snapshot.scan(PEOPLE) for row in rows] == [("ann", None, None, None, None, None)]


async def test_a_file_that_is_not_there_is_not_made_by_looking(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await SQLiteReader(path).open()
    assert not path.parent.exists()


async def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="file"):
        await SQLiteStore(tmp_path / "file" / "read.db").open()


@pytest.mark.parametrize("damage", ["header", "truncated", "half", "garbage", "zero page", "empty page"])
async def test_a_damaged_file_is_refused_with_the_way_out(store: SQLiteStore, damage: str) -> None:
    """F16: a reader also refuses it if the header is damaged. The text of the error has the remedy."""
    await fill(store)
    await store.close()
    data = bytearray(store.path.read_bytes())
    match damage:
        case "header":
            data[:16] = b"not a database!!"
        case "truncated":
            del data[-5000:]
        case "half":
            del data[len(data) // 2 :]
        case "garbage":
            data[16384 : 16384 + 65536] = os.urandom(65536)
        case "zero page":
            data[32768:36864] = bytes(4096)
        case _:
            data[40960:40968] = bytes(8)
    store.path.write_bytes(data)
    with pytest.raises(StoreDamaged, match=r"is damaged \(.*move the file.*is rebuilt from"):
        await store.open()
    if damage == "header":
        with pytest.raises(StoreDamaged):
            await SQLiteReader(store.path).open()
    for file in (store.path, store.path.with_name(f"{store.path.name}-wal"), store.path.with_name(f"{store.path.name}-shm")):
        file.unlink(missing_ok=True)
    await store.open()
    assert await store.checkpoints() == {}


async def test_a_file_whose_schema_has_a_text_that_is_not_utf_8_is_damaged(store: SQLiteStore) -> None:
    """The text of SQLite's error has the name of the table, which Python cannot read."""
    await fill(store)
    await store.close()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET name = CAST(x'a27e' AS TEXT), sql = 'CREATE' WHERE name = ?", (PEOPLE.name,))
    with pytest.raises(StoreDamaged, match=r"is damaged \(.*move the file.*is rebuilt from"):
        await store.open()
    with pytest.raises(StoreDamaged):
        async with SQLiteReader(store.path) as reader:
            await reader.checkpoints()


async def test_damage_that_shows_up_while_running_is_said(store: SQLiteStore) -> None:
    """A page that is overwritten under a running service."""
    await fill(store)
    await copied_whole(store)
    with closing(sqlite3.connect(store.path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (PEOPLE.name,)).fetchone()
    with store.path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    async with SQLiteReader(store.path) as reader:
        with pytest.raises(StoreDamaged):
            await reader.fetch("SELECT sum(length(extra)) FROM people")
        with pytest.raises(StoreDamaged):
            async with reader.snapshot() as snapshot:
                assert [rows async for rows in snapshot.scan(PEOPLE)] == []


async def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (id)")
    other.close()
    before = _bytes(path)
    with pytest.raises(StoreDamaged, match="another program"):
        await SQLiteStore(path).open()
    assert _bytes(path) == before


async def test_closing_finishes_what_is_being_written(store: SQLiteStore) -> None:
    """This includes a cancelled writer: the transaction is whole or absent."""
    writing = asyncio.create_task(store.advance([step(0, 1, *(person(str(n)) for n in range(20_000)))]))
    await asyncio.sleep(0)
    writing.cancel()
    await store.close()
    await store.open()
    assert await count(store) == (20_000 if await store.checkpoints() else 0)


@pytest.mark.parametrize("every", [0.0, float("inf")])
async def test_live_batches_leave_no_long_log_behind(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, every: float) -> None:
    """It is copied into the database in small pieces; without that it grows."""
    monkeypatch.setattr("projections.stores.sqlite.connection._COPY_EVERY", every)
    copier = store._copier
    assert copier is not None
    copier._copy_at = every
    for sequence in range(300):
        await store.advance([step(sequence, sequence + 1, person(str(sequence), extra="x" * 3000))])
        if copier._copying is not None:
            await asyncio.wrap_future(copier._copying)
    await store.checkpoints()
    size = store.path.with_name(f"{store.path.name}-wal").stat().st_size
    assert (size < 1_000_000) == (every == 0)


async def test_batches_go_on_while_the_log_is_copied(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_log, begun, go_on = connection.copy_log, threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go_on.wait(60)
        copy_log(connection)

    monkeypatch.setattr(connection, "copy_log", slow)
    await store.advance([step(0, 1, person("1"))])
    assert await asyncio.to_thread(begun.wait, 60)
    async with asyncio.timeout(60):
        for sequence in range(1, 20):
            await store.advance([step(sequence, sequence + 1, person(str(sequence)))])
    go_on.set()
    await store.close()
    await store.open()
    assert await count(store) == 19


async def test_a_database_that_is_gone_is_not_made_by_copying_its_log(store: SQLiteStore, tmp_path: Path) -> None:
    copier = LogCopier(lambda: None)
    gone = tmp_path / "gone.db"
    copier.written(gone)
    await asyncio.to_thread(copier.close)
    assert not gone.exists()


async def test_a_closed_store_says_so(store: SQLiteStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.advance([])
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.fetch("SELECT 1")


async def test_a_fault_of_the_program_is_not_taken_for_an_absent_database(store: SQLiteStore) -> None:
    """Trying again would not help: neither a query that is wrong nor a table that no migration made."""
    with pytest.raises(ProjectionError, match="a statement of this program failed, see its log") as caught:
        await store.fetch("SELECT * FROM nowhere")
    assert caught.type is ProjectionError
    with pytest.raises(ProjectionError, match="a statement of this program failed") as caught:
        await store.advance([step(0, 1, Put(PLACES, ("lake",)), projection=MAP)])
    assert caught.type is ProjectionError
