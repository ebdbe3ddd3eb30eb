"""The files of a database: the live one, the one before, one that is being made, and the lock that lets only one process write.

`<path>.live` names the live one by number, 0 for `<path>` itself, n for `<path>.<n>`; without it `<path>` is live. It is replaced
whole, so that there is no moment at which none is, or two are. No file of a database is ever renamed: SQLite finds the
write-ahead log by the name (https://www.sqlite.org/howtocorrupt.html, 2.4).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import attrs
import msgspec
import psutil
import structlog

from eventlog.support.files import locked, write_private
from projections.errors import StoreDamaged, StoreInUse

BESIDE = ("", "-wal", "-shm", "-journal", ".copy.lock")
"""Endings of the files that belong to one of a database."""


@attrs.frozen
class Files:
    """Which file is live, and which one was before it (None: there is none)."""

    live: int = 0
    old: int | None = None

    @property
    def new(self) -> int:
        """The file that is, or would be, made next."""
        return 1 + max(self.live, self.old or 0)


def read(path: Path) -> Files:
    """The files of the database at a path. Raises OSError, StoreDamaged."""
    try:
        text = _named(path).read_bytes()
    except FileNotFoundError:
        return Files()
    try:
        return msgspec.json.decode(text, type=Files)
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"{_named(path)} does not name the live file: {error}. Remove it and {path.name}*") from error


def write(path: Path, files: Files) -> None:
    """Make other files live and old in one step, which a power cut does not split. Raises OSError."""
    write_private(_named(path), msgspec.json.encode(files).decode())


def file_of(path: Path, number: int) -> Path:
    """The file of that number."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def identity(file: Path) -> tuple[int, int] | None:
    """Device and number of a file, which tell it from another one of its name; None if there is none. Raises OSError."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def locked_as(file: Path) -> Path:
    """The lock file of a file that is open as a copy: the lock of `<path>` itself is for the whole database."""
    return file.with_name(f"{file.name}.copy")


def remove(file: Path) -> None:
    """Remove a file of a database and all that belongs to it."""
    for ending in BESIDE:
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)


def quarantine(file: Path) -> Path:
    """Rename a file of a database, which no process has open, and all files that belong to it. Return the new name."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = file.with_name(f"{file.name}.damaged-{moment}")
    for ending in ("-wal", "-shm", ""):  # a log left behind would be taken for the next one's
        with suppress(FileNotFoundError):
            file.with_name(f"{file.name}{ending}").rename(aside.with_name(f"{aside.name}{ending}"))
    return aside


def remove_others(path: Path, keep: Collection[int]) -> None:
    """Remove the files of a database except these."""
    for found in tuple(path.parent.iterdir()):
        name, _, number = found.name.rpartition(".")
        if name == path.name and number.isdigit() and int(number) not in keep:
            remove(found)
    if 0 not in keep:
        remove(path)


def _named(path: Path) -> Path:
    return path.with_name(f"{path.name}.live")


log = structlog.get_logger(__name__)

BEAT_EVERY = 1.0
"""Seconds between two heartbeats of the owner."""
LEASE = 5.0
"""Seconds without a heartbeat after which a process that was stopped loses the lock."""
LONG_LEASE = 30.0
"""The same of a process that runs, and may only be busy."""

_POLL = 0.02
_MISSED = 1.5 * BEAT_EVERY
_SAID_AFTER = 1.0
"""Seconds after which a process that waits for a file is notified."""


class DatabaseLock:
    """Held from `take` to `release`, or until the process ends, however it ends.

    The lock is on a separate file, `<database>.lock`: closing a descriptor of the database itself would drop SQLite's locks on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2). An owner that keeps it for long calls `beat` every second: the file then
    names the process by pid and start, and its modification time is the last heartbeat. A lock cannot be taken from a process, so
    a process that waits for the lock kills an owner that hangs.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._beats = False

    @classmethod
    def take(cls, database: Path, *, patience: float, on_waiting: Callable[[str], object] | None = None) -> DatabaseLock:
        """Lock it, waiting at most `patience` seconds. Raises StoreInUse, OSError.

        `on_waiting` is called once, after a second, with the owner. If no heartbeat comes in this time, it waits until
        the lease has run out, then kills the process that hangs.
        """
        fd = os.open(_lock_file(database), os.O_RDWR | os.O_CREAT, 0o600)
        began = time.monotonic()
        end = began + patience
        silence = _Silence(fd)
        try:
            while not locked(fd):
                now = time.monotonic()
                owner = silence.look(now)
                if owner is not None and silence.seconds > owner.lease():
                    owner.kill(database, silence.seconds)
                elif now >= end and (owner is None or silence.seconds < _MISSED or patience <= 0):
                    raise StoreInUse(_in_use(database, os.pread(fd, 64, 0)))  # noqa: TRY301 - the descriptor is closed below
                if on_waiting is not None and now >= began + _SAID_AFTER:
                    on_waiting(_owner(os.pread(fd, 64, 0)))
                    on_waiting = None
                time.sleep(_POLL)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def beat(self) -> None:
        """A sign of life. Raises OSError."""
        if not self._beats:
            self._beats = True
            os.pwrite(self._fd, f"{os.getpid()} {psutil.Process().create_time():.2f}\n".encode(), 0)
        os.utime(self._fd)

    def release(self) -> None:
        """Give it up."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


@attrs.frozen
class LockOwner:
    """A process that keeps a lock by heartbeats: its pid, and when it was started (seconds since 1970)."""

    pid: int
    started: float

    def _process(self) -> psutil.Process | None:
        try:
            process = psutil.Process(self.pid)
            return process if abs(process.create_time() - self.started) < 1 else None
        except psutil.NoSuchProcess:
            return None

    @property
    def alive(self) -> bool:
        """Whether it is there, running or not."""
        return self._process() is not None

    def lease(self) -> float:
        """Seconds without a heartbeat after which it hangs."""
        try:
            process = self._process()
            return LEASE if process is not None and process.status() == psutil.STATUS_STOPPED else LONG_LEASE
        except psutil.NoSuchProcess:  # it has ended just now, and the lock is free
            return LONG_LEASE

    def kill(self, database: Path, silent: float) -> None:
        """Kill it. Nothing happens if it is gone. Raises StoreInUse if this user may not."""
        process = self._process()
        if process is None:
            return
        log.warning(
            "the process that has the database hangs, it is killed", database=str(database), pid=self.pid, silent=round(silent, 1)
        )
        try:
            process.kill()
        except psutil.NoSuchProcess:
            return
        except psutil.AccessDenied as error:
            raise StoreInUse(f"{database} is in use by process {self.pid}, which hangs: this user may not end it") from error


class _Silence:
    """For how long a lock file has shown no heartbeat, by the monotonic clock of this process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._seen: tuple[int, bytes] | None = None
        self._since = time.monotonic()
        self.seconds = 0.0

    def look(self, now: float) -> LockOwner | None:
        """Return the owner of the lock if that process keeps it by heartbeats."""
        content = os.pread(self._fd, 64, 0)
        seen = os.fstat(self._fd).st_mtime_ns, content
        if seen != self._seen:
            self._seen, self._since = seen, now
        self.seconds = now - self._since
        return read_owner(content)


def read_owner(content: bytes) -> LockOwner | None:
    """The process that keeps a lock by heartbeats, as its file names it; None if it names no such process."""
    words = content.split()
    try:
        return LockOwner(int(words[0]), float(words[1]))
    except (IndexError, ValueError):
        return None


def _lock_file(database: Path) -> Path:
    return database.with_name(f"{database.name}.lock")


def _in_use(database: Path, owner: bytes) -> str:
    return f"{database} is in use by {_owner(owner)}: stop it, or choose another database; one process at a time writes to one"


def _owner(written: bytes) -> str:
    pid = written.decode(errors="replace").split()
    return f"process {pid[0]}" if pid else "another process"
