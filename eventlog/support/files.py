"""Files that survive a loss of power, and locks on files."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a directory. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def locked(fd: int) -> bool:
    """Take the lock on an open file, and return whether this succeeded: no other process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
