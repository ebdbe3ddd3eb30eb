"""Locks that several processes share, as files (flock(2)). The kernel gives a lock back when its holder ends, however it ends.

Locks of flock(2) belong to the open file, so two jobs of one process exclude each other like two processes do.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.25


class FileLock:
    """A lock held; `release` gives it back."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def try_acquire(cls, path: Path, *, shared: bool = False) -> FileLock | None:
        """Take a lock, on a file that is made where it is missing; None where another holder excludes that."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # a holder before may have removed it with what it guarded
                return cls(path, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def alone(self) -> bool:
        """Hold it exclusively from now on, where nobody else holds it; whether that is so."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write(self, text: str) -> None:
        """Let the file say this, for whoever reads it."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def touch(self) -> None:
        """Let the file's time of change be now."""
        os.utime(self._descriptor)

    def remove(self) -> None:
        """Remove the file, while it is held."""
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


@asynccontextmanager
async def locked(path: Path, *, shared: bool = False) -> AsyncIterator[FileLock]:
    """Hold a lock, waiting for it as long as it takes without blocking the event loop."""
    pause = _FIRST_PAUSE
    while (lock := FileLock.try_acquire(path, shared=shared)) is None:
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)
    try:
        yield lock
    finally:
        lock.release()
