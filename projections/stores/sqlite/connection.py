"""Connections to a database file: their settings, the meaning of SQLite's errors for a caller, and a short write-ahead log.

By default SQLite has the committing connection copy the log into the database when it is long. This takes the disk, and the
batch, for tens of milliseconds. So a separate thread copies it once a second, and the writer the commits of that time: if the
whole log is copied, the writer restarts it (https://www.sqlite.org/wal.html#checkpointing).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog

from eventlog.support.files import make_private
from projections.errors import ArgumentRefused, ProjectionError, RowRefused, StoreDamaged, StoreForeign, StoreUnavailable
from projections.model import timestamp_text

APPLICATION_ID = 0x67637464
"""Marks a database file as one of ours (https://www.sqlite.org/pragma.html#pragma_application_id)."""

_log = structlog.get_logger(__name__)

_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "its pages contradict one another",
    sqlite3.SQLITE_NOTADB: "it is not a database",
    None: "a text in it is not UTF-8",
}
_REFUSED = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}
_LOCKED = "it is locked by another program: end that program's transaction"
_DISK = "it cannot be read or written: look at the disk and its log"
_AWAY = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: look at the file, its directory and their permissions",
    sqlite3.SQLITE_FULL: "it cannot grow, because the disk or a quota is full: make room",
    sqlite3.SQLITE_INTERRUPT: "the query was interrupted",
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_NOMEM: "the memory of the process is used up",
    sqlite3.SQLITE_PERM: "it may not be accessed: look at the permissions of the file",
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: "it may not be written: look at the permissions of the file and its directory",
}
"""The cause and the remedy for each error that ends when something outside of this program changes."""
_UNBINDABLE = (sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError, UnicodeEncodeError)


def damaged(path: Path, reason: str) -> StoreDamaged:
    """The error for a file that is not sound, with the way out."""
    return StoreDamaged(
        f"{path} is damaged ({reason}): stop the service, move the file and its companions ({path.name}-wal, {path.name}-shm) "
        "away and start again; the read model is rebuilt from the event log"
    )


@contextmanager
def translated(path: Path, *, asked: bool = False) -> Iterator[None]:
    """Raises what a database error means: StoreUnavailable, StoreDamaged, RowRefused, else ProjectionError (our own fault).

    `asked`: a value that SQLite cannot hold came from the caller of a query. Raises ArgumentRefused for it.
    """
    unbindable = ArgumentRefused if asked else RowRefused
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        if (primary is not None and primary in _DAMAGED) or (primary is None and "decode to UTF-8" in str(error)):
            _log.debug("the database is damaged", database=str(path), reason=str(error))
            raise damaged(path, _DAMAGED[primary]) from error
        if primary in _REFUSED:
            raise RowRefused(f"{path}: {error}") from error
        if primary is not None and primary in _AWAY:
            _log.debug("the database refuses", database=str(path), reason=str(error))
            raise StoreUnavailable(f"{path}: {_AWAY[primary]}") from error
        if isinstance(error, _UNBINDABLE):
            raise unbindable(f"{path}: {error}") from error
        _log.error("a statement failed", database=str(path), reason=str(error))
        raise ProjectionError(f"{path}: a statement of this program failed, see its log") from error
    except UnicodeDecodeError as error:  # of the text of SQLite's error, which quotes a damaged schema
        _log.debug("the database is damaged", database=str(path), reason=str(error))
        raise damaged(path, "a text of its schema is not UTF-8") from error
    except _UNBINDABLE as error:
        raise unbindable(f"{path}: a value that SQLite cannot hold: {error}") from error
    except OSError as error:
        _log.debug("the database refuses", database=str(path), reason=str(error))
        raise StoreUnavailable(f"{path}: {_DISK}") from error


def connect_writer(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """The one connection that writes to a file, made with mode 0600 if it is missing. `busy_timeout` in seconds.

    synchronous=NORMAL: a power cut may take the last transactions, but whole ones, rows and checkpoint together, and the
    log, which is the truth, gives them again. FULL would cost one sync per batch: a live batch is one commit.
    """
    make_private(path)
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    try:
        _check_ownership(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_KEPT}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ownership(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION_ID and (found or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]):
        raise StoreForeign(f"{path} is a database of another program: choose another file")


CACHE_KIB = 8 * 1024
WAL_PAGES = 64_000
"""Pages (4 KiB each) of write-ahead log after which a commit copies them into the database, if `LogCopier` is late."""
LOG_KEPT = 64 * 1024**2
"""Bytes of its file that are kept when all of it has been copied."""


def connect_reader(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """A connection that only reads. It never copies the write-ahead log back either: one connection does, the writer's."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def bound(arguments: tuple[Any, ...]) -> Mapping[str, Any]:
    """Arguments for a statement that names them `$1`, `$2` and so on."""
    return dict(zip(_names(len(arguments)), map(_bindable, arguments), strict=True))


def _bindable(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ArgumentRefused(f"{value} is a time without a zone")
    return timestamp_text(value)


@lru_cache
def _names(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))


@contextmanager
def transaction(connection: sqlite3.Connection, *, deferred: bool = False) -> Iterator[None]:
    """A transaction that writes: committed at the end, rolled back if anything is raised.

    `deferred`: a dangling reference is an error at the end only. That is dear: SQLite prepares every statement again after it.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if deferred:
            connection.execute("PRAGMA defer_foreign_keys = ON")
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have rolled it back already
            connection.execute("ROLLBACK")
        raise


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
