"""A small disk for the data of a nats-server, which a test can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


class SmallDisk:
    """A small disk, if one can be mounted here; else the files of the nats-server cannot grow while it is full."""

    def __init__(self, directory: Path, *, mounted: bool) -> None:
        self.directory = directory
        self.mounted = mounted

    def fill(self, server: psutil.Process) -> None:
        """Leave no room on it."""
        if not self.mounted:
            server.rlimit(psutil.RLIMIT_FSIZE, (4096, psutil.RLIM_INFINITY))
            return
        with (self.directory / "filler").open("wb") as filler:
            while True:
                try:
                    os.write(filler.fileno(), bytes(64 * 1024))
                except OSError:
                    return

    def free(self) -> None:
        """Make room again."""
        (self.directory / "filler").unlink(missing_ok=True)


@contextmanager
def small_disk(directory: Path, *, mib: int = 64) -> Iterator[SmallDisk]:
    """Make a directory that is a small disk while the block runs."""
    directory.mkdir()
    mounted = not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(directory)], check=False, capture_output=True
    ).returncode
    try:
        yield SmallDisk(directory, mounted=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(directory)], check=True)
