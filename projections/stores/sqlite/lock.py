"""The lock that lets only one process write to a database file."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from projections.errors import StoreInUse

_POLL = 0.02
_SAID_AFTER = 1.0
"""Seconds after which somebody who waits for a file is told so."""


class DatabaseLock:
    """Held from `take` to `release`, or until the process ends, however it ends.

    A file of its own, `<database>.lock`: closing a descriptor of the database itself would drop the locks that SQLite has on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, database: Path, *, patience: float, on_waiting: Callable[[str], object] | None = None) -> DatabaseLock:
        """Lock it, waiting at most `patience` seconds. Raises StoreInUse, OSError.

        `on_waiting` is told once, after a second, who has it.
        """
        fd = os.open(database.with_name(f"{database.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        began = time.monotonic()
        end = began + patience
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise StoreInUse(_in_use(database, os.pread(fd, 32, 0))) from None
                    if on_waiting is not None and time.monotonic() >= began + _SAID_AFTER:
                        on_waiting(_owner(os.pread(fd, 32, 0)))
                        on_waiting = None
                    time.sleep(_POLL)
                else:
                    break
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        """Give it up."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def _in_use(database: Path, owner: bytes) -> str:
    return f"{database} is in use by {_owner(owner)}: stop it, or choose another database; one process at a time writes to one"


def _owner(written: bytes) -> str:
    pid = written.decode(errors="replace").strip()
    return f"process {pid}" if pid else "another process"
