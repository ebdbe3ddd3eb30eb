"""Keeps the write-ahead log of a database short: it is copied into the database now and then, concurrently with writes.

By default SQLite has the committing connection do that when the log is long, which takes the disk, and the batch, for tens of
milliseconds. So a separate thread copies it once a second, and the writer the commits of that time: if the whole log is copied,
the writer restarts it (https://www.sqlite.org/wal.html#checkpointing).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

_COPY_EVERY = 1.0
"""Seconds between copies."""


class LogCopier:
    """Copies the log of one writer; `copy_rest` has the writer copy the remaining part, between two batches."""

    def __init__(self, copy_rest: Callable[[], object]) -> None:
        self._copy_rest = copy_rest
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store log")
        self._copying: Future[None] | None = None
        self._copy_at = 0.0

    def written(self, file: Path) -> None:
        """A batch has been committed to the file: copy the log if it is time."""
        moment = time.monotonic()
        if moment >= self._copy_at and (self._copying is None or self._copying.done()):
            self._copy_at = moment + _COPY_EVERY
            self._copying = self._thread.submit(self._copy, file)

    def close(self) -> None:
        """Wait until no copy is under way."""
        self._thread.shutdown()

    def _copy(self, file: Path) -> None:
        try:
            with closing(_connect(file)) as connection:
                copy_log(connection)
        except sqlite3.Error as error:
            warn(file, error)
        else:
            self._copy_rest()


def _connect(file: Path) -> sqlite3.Connection:
    """Of an existing file: a file that was removed in between is not replaced."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)


def copy_log(connection: sqlite3.Connection) -> None:
    """Copy as much as can be without waiting for anybody. Raises sqlite3.Error."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def warn(file: Path, error: Exception) -> None:
    """Log that the log could not be copied: its commits are safe in it, and the next write reports more."""
    log.warning("the write-ahead log cannot be copied", database=str(file), reason=str(error))


def copy_all(writer: sqlite3.Connection) -> None:
    """Copy all of the write-ahead log, unless there are readers or the disk is full."""
    with suppress(sqlite3.Error):
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
