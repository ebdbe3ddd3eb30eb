"""Files that survive a loss of power, files that only their owner can read, and locks on files."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a directory. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(file: Path) -> None:
    """Make a file with mode 0600, unless it is there. Raises OSError.

    A file that is there is not opened: closing it would drop the locks of SQLite on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def write_private(file: Path, text: str) -> None:
    """Write a file as a whole, with mode 0600 whatever the umask is; it survives a loss of power. Raises OSError."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
        os.fchmod(opened.fileno(), 0o600)
    sync(draft)
    draft.replace(file)
    sync(file.parent)


def locked(fd: int) -> bool:
    """Take the lock on an open file, and return whether this succeeded: no other process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
