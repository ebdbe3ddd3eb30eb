"""Writing a database file: one process, one thread, one connection; a batch and its checkpoints in one transaction.

Copies are separate files next to it. A copy takes the place of the live tables: another file is written to.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from eventlog.support.timers import until_tick
from projections.errors import CopyRefused, MigrationError, RowRefused, StoreUnavailable
from projections.model import Projection, Table
from projections.store import (
    NOTHING_PARKED,
    Checkpoint,
    CheckpointOutcome,
    CopyPart,
    Mark,
    Parked,
    Place,
    SchemaVersion,
    Step,
    check_as_far,
)
from projections.stores.common import Rows, judge, last_changes
from projections.stores.sqlite import connection, files, statements
from projections.stores.sqlite.connection import APPLICATION_ID, LogCopier, connect_writer, damaged, transaction, translated
from projections.stores.sqlite.files import BEAT_EVERY, DatabaseLock, Files
from projections.stores.sqlite.reader import SQLiteReader
from projections.stores.sqlite.statements import WriteFence


@contextmanager
def adopted(
    file: Path, live: sqlite3.Connection, projections: Collection[str], *, busy_timeout: float
) -> Iterator[tuple[sqlite3.Connection, WriteFence]]:
    """A connection that writes to a copy, with all that is not of these projections as the `live` tables have it.

    The block has the file named as the live one. If it fails, the connection is closed. Raises CopyRefused, StoreInUse.
    """
    if not file.exists():
        raise CopyRefused("there is no copy: `projections rebuild` makes one")
    lock = DatabaseLock.take(files.locked_as(file), patience=0)
    try:
        writer = connect_writer(file, busy_timeout=busy_timeout)
        try:
            before = statements.read_checkpoints(live)
            check_as_far(projections, before, statements.read_checkpoints(writer))
            with transaction(writer):
                fence = WriteFence.take(writer)
                statements.keep_checkpoints(writer, projections, before.values())
                statements.write_scrubs(writer, statements.read_scrubs(live))
            yield writer, fence
        except BaseException:
            writer.close()
            raise
    finally:
        lock.release()


T = TypeVar("T")


class SQLiteStore(SQLiteReader):
    """A database file that this process alone writes to: `projections.store.Store`.

    `patience`: seconds to wait for another process to release the file. `on_waiting` is called with that process, in another
    thread. `write_timeout`: seconds that a transaction may wait for a lock of another program on the file. `is_copy`: see
    `SQLiteCopies`.
    """

    election = None

    def __init__(
        self,
        path: Path,
        *,
        patience: float = 2.0,
        write_timeout: float = 1.0,
        is_copy: bool = False,
        on_waiting: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(path, is_copy=is_copy)
        self._on_waiting = on_waiting
        self._locked = files.locked_as(path) if is_copy else path
        self._patience = patience
        self._write_timeout = write_timeout
        self._lock: DatabaseLock | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._writer: sqlite3.Connection | None = None
        self._copier: LogCopier | None = None
        self._fence = WriteFence(0)
        self._beating: asyncio.Task[None] | None = None
        self.set_aside_as: Path | None = None
        """The new place of a damaged database that was here before."""

    async def open(self) -> None:
        """Open the file, made if it is missing, and check it (SQLite's quick_check: about a second per GB).

        Raises StoreInUse, StoreUnavailable, StoreDamaged; SQLite does not notice a changed value, only a fold does.
        """
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._copier = LogCopier(partial(self._thread.submit, self._copy_rest))
        try:
            await self._run(self._open)
            await super().open()
            self._beating = asyncio.create_task(self._beat(), name="lease of the database file")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is being written and close."""
        await super().close()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
            self._beating = None
        if self._copier is not None:
            await asyncio.to_thread(self._copier.close)
            self._copier = None
        if self._thread is not None:
            await self._run(self._close)
            self._thread.shutdown()
            self._thread = None

    async def _beat(self) -> None:
        """Show that the event loop of this process is alive."""
        while self._lock is not None:
            with suppress(OSError):  # of a disk that fails: writes notice it
                self._lock.beat()
            await asyncio.sleep(until_tick(BEAT_EVERY))

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one, when what is being written now has been."""
        return await self._run(lambda: statements.read_checkpoints(self._opened_writer()))

    async def parked(self) -> Sequence[Parked]:
        """The aggregates that are parked, by projection and sequence, when what is being written now has been."""
        return await self._run(lambda: statements.read_parked(self._opened_writer()))

    async def advance(
        self,
        steps: Sequence[Step],
        parked: Mapping[Place, Parked | None] = NOTHING_PARKED,
        marks: Sequence[Mark] = (),
    ) -> CheckpointOutcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`.

        Raises NotLeading if another process has opened the file to write to it since.
        """

        def write(tables: Sequence[tuple[Table, Rows]], *, deferred: bool = False) -> CheckpointOutcome:
            writer = self._opened_writer()
            with transaction(writer, deferred=deferred):
                outcome = judge(steps, self._fence.checkpoints(writer))
                if outcome is CheckpointOutcome.STORED:
                    statements.write_rows(writer, tables)
                    if parked:
                        statements.write_parked(writer, parked)
                    statements.write_marks(writer, marks)
                    statements.write_checkpoints(writer, [step.after for step in steps])
            if outcome is CheckpointOutcome.STORED:
                self._fence.committed(step.after for step in steps)
            return outcome

        def advance() -> CheckpointOutcome:
            tables = [pair for step in steps for pair in last_changes(step)]
            try:
                return write(tables)
            except sqlite3.IntegrityError as error:
                if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                    raise
            return write(tables, deferred=True)  # a row may refer to one that is written after it

        outcome = await self._run(advance)
        if self._copier is not None:
            self._copier.written(self.file)
        return outcome

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections, remove their checkpoints and parked aggregates, in one transaction."""

        def forget() -> None:
            writer = self._opened_writer()
            with transaction(writer, deferred=True):
                self._fence.check(writer)
                for projection in reversed(projections):
                    statements.forget(writer, projection.name, [table.name for table in reversed(projection.tables)])

        await self._run(forget)

    async def keep_scrubs(self, stream: str, state: str) -> None:
        """Keep the state of the passes over a log. Raises NotLeading."""

        def keep() -> None:
            writer = self._opened_writer()
            with transaction(writer):
                self._fence.check(writer)
                statements.write_scrubs(writer, {stream: state})

        await self._run(keep)

    async def migrate(
        self, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
    ) -> Sequence[str] | None:
        """Run the statements of one migration and record its version, in one transaction."""

        def migrate() -> Sequence[str] | None:
            writer = self._opened_writer()
            with transaction(writer, deferred=True):
                self._fence.check(writer)
                return statements.migrate(writer, sql, before=before, after=after, projections=projections)

        try:
            return await self._run(migrate)
        except RowRefused as error:
            raise MigrationError(f"the rows there do not allow the migration, it had no effect: {error}") from error

    async def leave_indexes_out(self, projections: Sequence[Projection]) -> None:
        """Do without the indexes of empty tables that only queries need, until `make_indexes`."""

        def leave_out() -> None:
            writer = self._opened_writer()
            with transaction(writer):
                statements.leave_out(writer, [table.name for projection in projections for table in projection.tables])

        await self._run(leave_out)

    async def make_indexes(self) -> None:
        """Make the indexes that have been left out."""
        await self._run(lambda: statements.make(self._opened_writer()))

    async def switch(self, projections: Collection[str], part: CopyPart = CopyPart.NEW) -> None:
        """Put a copy (`SQLiteCopies`) in the place of the live tables, which are kept as the other part.

        See `projections.store.Switching`.
        """
        now = files.read(self.path)
        if part is CopyPart.OLD and now.old is None:
            raise CopyRefused("there are no old tables to go back to")
        then = Files(now.new, now.live) if part is CopyPart.NEW or now.old is None else Files(now.old)
        # A cancellation in between must not leave a writer on one file and readers on another.
        await asyncio.shield(self._change(projections, then))

    async def _change(self, projections: Collection[str], then: Files) -> None:
        file = files.file_of(self.path, then.live)
        reader = await self._run(lambda: self._adopt(projections, file, then))
        await self._read_from(reader, file)

    def _adopt(self, projections: Collection[str], file: Path, then: Files) -> sqlite3.Connection:
        """Write to another file from now on; gives a connection to read from it."""
        before = self._opened_writer()
        with adopted(file, before, projections, busy_timeout=self._write_timeout) as (writer, fence):
            reader = self._connect(file)
            files.write(self.path, then)
        before.close()
        self._writer, self._fence = writer, fence
        files.remove_others(self.path, {then.live, then.new, then.live if then.old is None else then.old})
        return reader

    async def quarantine(self) -> Path:
        """Move the files of a closed, damaged database aside. Return the new path. The next `open` makes a new database.

        Raises StoreInUse, StoreUnavailable.
        """
        with translated(self.path):
            self.set_aside_as = await asyncio.to_thread(self._set_aside)
        return self.set_aside_as

    def _set_aside(self) -> Path:
        lock = DatabaseLock.take(self._locked, patience=self._patience)
        try:
            return files.quarantine(self._live_file())
        finally:
            lock.release()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = DatabaseLock.take(self._locked, patience=self._patience, on_waiting=self._on_waiting)
        self.file = self._live_file()
        writer = self._writer = connect_writer(self.file, busy_timeout=self._write_timeout)
        (problem,) = writer.execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise damaged(self.file, problem.replace("\n", " "))
        statements.check_format(writer, self.file)
        with transaction(writer):
            writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            statements.create_system_tables(writer)
            self._fence = WriteFence.take(writer)

    def _copy_rest(self) -> None:
        try:
            connection.copy_log(self._opened_writer())
        except (sqlite3.Error, StoreUnavailable) as error:
            connection.warn(self.path, error)

    def _close(self) -> None:
        if self._writer is not None:
            connection.copy_all(self._writer)
            self._writer.close()
            self._writer = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _opened_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} is not open")
        return self._writer

    async def _run(self, function: Callable[[], T]) -> T:
        if self._thread is None:
            raise StoreUnavailable(f"{self.path} is not open")
        with translated(self.path):
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)


class SQLiteCopies:
    """The copies of a database file: `projections.store.Copies`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def there(self) -> Collection[CopyPart]:
        """Which there are."""
        with translated(self._path):
            found = files.read(self._path)
            parts = {CopyPart.NEW: found.new, CopyPart.OLD: found.old}
            return [part for part, number in parts.items() if number is not None and files.file_of(self._path, number).exists()]

    def store(self, part: CopyPart) -> SQLiteStore:
        """A copy to write to."""
        return SQLiteStore(self._file(part), patience=0, is_copy=True)

    def reader(self, part: CopyPart) -> SQLiteReader:
        """A copy to look at."""
        return SQLiteReader(self._file(part), is_copy=True)

    async def discard(self, part: CopyPart) -> None:
        """Remove a copy, if it is there."""
        if part not in await self.there():
            return
        with translated(self._path):
            await asyncio.to_thread(self._discard, part)

    def _discard(self, part: CopyPart) -> None:
        file = self._file(part)
        lock = DatabaseLock.take(files.locked_as(file), patience=0)
        try:
            found = files.read(self._path)
            if part is CopyPart.OLD:
                files.write(self._path, files.Files(found.live))
            files.remove(file)
        finally:
            lock.release()

    def _file(self, part: CopyPart) -> Path:
        with translated(self._path):
            found = files.read(self._path)
            number = found.new if part is CopyPart.NEW else found.old
            if number is None:
                raise CopyRefused("there are no old tables")
            return files.file_of(self._path, number)
