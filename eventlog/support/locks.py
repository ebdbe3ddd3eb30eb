"""Locks of flock(2): the kernel releases them at any end of their holders."""

from __future__ import annotations

import fcntl


def locked(fd: int) -> bool:
    """Take the lock on an open file, and return whether this succeeded: no other process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
