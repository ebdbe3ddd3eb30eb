"""Writing a database file: one process, one thread, one connection; a batch, its checkpoints and its keys in one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from projections.errors import MigrationError, RowRefused, StoreUnavailable
from projections.model import Projection
from projections.sqlite import schema, writing
from projections.sqlite.connection import APPLICATION_ID, connect_writer, damaged, transaction, translated
from projections.sqlite.lock import FileLock
from projections.sqlite.reader import SQLiteReader
from projections.store import Checkpoint, KeyRecord, Outcome, SchemaVersion, Step

T = TypeVar("T")

log = structlog.get_logger(__name__)

_FEW = 100
"""Changes up to which a batch counts as live: then there is time, and waiting is noticed."""
_COPY_EVERY = 1.0
"""Seconds between copies of the write-ahead log while live: a long one takes the disk for tens of milliseconds."""
_REPLAY_OVER = 2.0
"""Seconds after the last larger batch in which a replay may still be going on: then the log may grow, to be copied seldom."""


class SQLiteStore(SQLiteReader):
    """A database file that this process alone writes to: `projections.store.Store`.

    `patience`: seconds to wait for another process to give the file up; `write_timeout`: seconds that a transaction may
    wait for a lock that some other program has on the file.
    """

    def __init__(self, path: Path, *, patience: float = 2.0, write_timeout: float = 5.0, read_timeout: float = 0.25) -> None:
        super().__init__(path, read_timeout=read_timeout)
        self._patience = patience
        self._write_timeout = write_timeout
        self._lock: FileLock | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._writer: sqlite3.Connection | None = None
        self._copy_at = 0.0

    async def open(self) -> None:
        """Open the file, made where it is missing, and check it (SQLite's quick_check: about a second per GB).

        Raises StoreInUse, StoreUnavailable, StoreDamaged; SQLite does not notice a changed value, only a fold does.
        """
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        try:
            await self._run(self._open)
            await super().open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is being written and close."""
        await super().close()
        if self._thread is not None:
            await self._run(self._close)
            self._thread.shutdown()
            self._thread = None

    async def checkpoints(self) -> Mapping[str, Checkpoint]:
        """The checkpoint of each projection that has one, when what is being written now has been."""
        return await self._run(lambda: writing.read_checkpoints(self._opened_writer()))

    async def advance(self, steps: Sequence[Step], keys: Sequence[KeyRecord] = ()) -> Outcome:
        """Write the rows and move the checkpoints of all steps in one transaction, each compared with its `before`."""

        def advance() -> Outcome:
            writer = self._opened_writer()
            tables = [pair for step in steps for pair in writing.last_changes(step)]
            with transaction(writer):
                outcome = writing.judge(steps, writing.read_checkpoints(writer))
                if outcome is Outcome.STORED:
                    writing.write_rows(writer, tables)
                    writing.write_keys(writer, keys)
                    writing.write_checkpoints(writer, [step.after for step in steps])
            return outcome

        outcome = await self._run(advance)
        self._copy_log_soon(sum(len(step.changes) for step in steps))
        return outcome

    async def forget(self, projections: Sequence[Projection]) -> None:
        """Empty the tables of these projections and remove their checkpoints, in one transaction."""

        def forget() -> None:
            writer = self._opened_writer()
            with transaction(writer):
                for projection in reversed(projections):
                    writing.forget(writer, projection.name, [table.name for table in reversed(projection.tables)])

        await self._run(forget)

    async def migrate(
        self, sql: str, *, before: SchemaVersion, after: SchemaVersion, projections: Sequence[Projection]
    ) -> Sequence[str] | None:
        """Run the statements of one migration and record its version, in one transaction."""

        def migrate() -> Sequence[str] | None:
            writer = self._opened_writer()
            with transaction(writer):
                if schema.read_version(writer) != before:
                    return None
                old = schema.shapes(writer, projections)
                _execute(writer, sql)
                new = schema.shapes(writer, projections)
                changed = [p for p in projections if any(old.get(table.name) != new.get(table.name) for table in p.tables)]
                for projection in reversed(changed):
                    left = [table.name for table in reversed(projection.tables) if table.name in new]
                    writing.forget(writer, projection.name, left)
                schema.write_version(writer, after)
                return [projection.name for projection in changed]

        try:
            return await self._run(migrate)
        except RowRefused as error:
            raise MigrationError(f"the rows there are do not allow the migration, nothing was changed: {error}") from error

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock.take(self.path, patience=self._patience)
        writer = self._writer = connect_writer(self.path, busy_timeout=self._write_timeout)
        (problem,) = writer.execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise damaged(self.path, problem.replace("\n", " "))
        with transaction(writer):
            writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            schema.create_system_tables(writer)

    def _copy_log_soon(self, changes: int) -> None:
        moment = time.monotonic()
        if changes > _FEW:
            self._copy_at = moment + _REPLAY_OVER
        elif moment >= self._copy_at and self._thread is not None:
            self._copy_at = moment + _COPY_EVERY
            self._thread.submit(self._copy_log)

    def _copy_log(self) -> None:
        """Copy the write-ahead log into the database, while there is little of it: after the answer, before the next batch."""
        try:
            self._opened_writer().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (sqlite3.Error, StoreUnavailable) as error:  # what was written is safe in the log; the next writing will say more
            log.warning("the write-ahead log cannot be copied", database=str(self.path), reason=str(error))

    def _close(self) -> None:
        if self._writer is not None:
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


def _execute(writer: sqlite3.Connection, script: str) -> None:
    for statement in schema.statements(script):
        try:
            writer.execute(statement)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
                raise
            raise MigrationError(
                f"a statement of the migration failed, nothing was changed: {error}: {statement.strip()}"
            ) from error
