"""Opening files that code that is not trusted may have put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 16


def open_regular(file: str | Path) -> BinaryIO:
    """Open a regular file for reading, without ever following a symbolic link or waiting for the other end of a pipe.

    Raises OSError, also for another kind of file.
    """
    return os.fdopen(_open(file)[0], "rb")


def read_regular(file: str | Path, most: int) -> bytes:
    """Return at most `most` bytes of a file, opened as by `open_regular`: faster than a file object for thousands of files."""
    descriptor, size = _open(file)
    try:
        content = os.read(descriptor, min(size, most))
        while len(content) < most and (more := os.read(descriptor, min(_PIECE, most - len(content)))):
            content += more
        return content
    finally:
        os.close(descriptor)


def _open(file: str | Path) -> tuple[int, int]:
    """A descriptor of a regular file, and how large the file is."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return descriptor, found.st_size
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(file))
