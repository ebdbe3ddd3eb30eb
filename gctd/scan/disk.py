"""The free space of a disk, and the limits for all that uses it: jobs, running programs, caches.

Below LEAST_FREE a worker takes no job. Below LEAST_FREE_RUNNING a running program is ended. A job that begins can therefore write
the difference at least.
"""

from __future__ import annotations

import os

MIB = 1024 * 1024
LEAST_FREE = 512 * MIB
"""Bytes that must be free for a job to begin."""
LEAST_FREE_RUNNING = 256 * MIB
"""Bytes that must stay free while a program of a scan runs."""


def free_bytes(directory: str | os.PathLike[str]) -> int:
    """Return the bytes that this user can write on the disk of a directory. Raises OSError."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def bytes_to_keep(directory: str | os.PathLike[str], wanted: int) -> int:
    """Return the bytes that a cache leaves free on its disk: `wanted`, of a small disk a tenth, but enough for a job.

    Raises OSError.
    """
    disk = os.statvfs(directory)
    return max(LEAST_FREE, min(wanted, disk.f_blocks * disk.f_frsize // 10))
