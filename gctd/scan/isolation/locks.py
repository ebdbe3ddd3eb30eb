"""Locks that several processes share, as files (flock(2)). The kernel releases a lock at any end of its holder.

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
    """A held lock; `release` releases it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def try_acquire(cls, path: Path, *, shared: bool = False) -> FileLock | None:
        """Take a lock on a file, which is created if it is missing; None if another holder excludes it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # an earlier holder may have removed the file with the guarded directory
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
        """Make the lock exclusive, unless another process holds it. Report whether it is exclusive."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write(self, text: str) -> None:
        """Write a text into the file, for its readers."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def touch(self) -> None:
        """Set the file's modification time to now."""
        os.utime(self._descriptor)

    def remove(self) -> None:
        """Remove the file, while it is held."""
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


@asynccontextmanager
async def locked(path: Path, *, shared: bool = False) -> AsyncIterator[FileLock]:
    """Hold a lock. The wait has no limit, and does not block the event loop."""
    pause = _FIRST_PAUSE
    while (lock := FileLock.try_acquire(path, shared=shared)) is None:
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)
    try:
        yield lock
    finally:
        lock.release()
