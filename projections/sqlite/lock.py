"""The lock that lets only one process write to a database file."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from projections.errors import StoreInUse

_POLL = 0.02


class FileLock:
    """Held from `take` to `release`, or until the process ends, however it ends.

    A file of its own, `<database>.lock`: closing a descriptor of the database itself would drop the locks that SQLite has on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, database: Path, *, patience: float) -> FileLock:
        """Lock it, waiting at most `patience` seconds. Raises StoreInUse, OSError."""
        fd = os.open(database.with_name(f"{database.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + patience
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise StoreInUse(_in_use(database, os.pread(fd, 32, 0))) from None
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
    pid = owner.decode(errors="replace").strip()
    who = f"process {pid}" if pid else "another process"
    return f"{database} is in use by {who}: stop it, or choose another database; one process at a time writes to one"
