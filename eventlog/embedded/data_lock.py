"""The lock on the data directory of an embedded server, which names its owner."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from http import HTTPStatus
from pathlib import Path

import psutil

from eventlog.errors import EventLogError
from eventlog.support.files import locked

_PATIENCE = 10.0
"""Seconds for the server of an owner that was killed to end."""
_POLL = 0.01


class DataDirectoryInUse(EventLogError):
    """Another process runs a server on the same data directory."""

    status = HTTPStatus.CONFLICT

    def __init__(self, directory: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{directory} is in use by {owner}: stop it, or choose another data directory")
        self.pid = pid


class DataLock:
    """The lock on a data directory. The server inherits it, so that it holds until both have ended."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    async def take(cls, directory: Path) -> DataLock:
        """Take the lock of a directory. Raises DataDirectoryInUse."""
        end = time.monotonic() + _PATIENCE
        with contextlib.ExitStack() as undo:
            fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            undo.callback(os.close, fd)
            while not locked(fd):
                pids = [int(pid) for pid in os.pread(fd, 64, 0).split()]
                if any(map(_alive, pids[:1])) or time.monotonic() > end:
                    raise DataDirectoryInUse(directory, next(filter(_alive, pids), None))
                await asyncio.sleep(_POLL)  # the owner was killed, its server is about to follow; or it begins just now
            undo.pop_all()
            return cls(fd)

    def name(self, server: int) -> None:
        """Write down the owner, and the pid of the server."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{os.getpid()} {server}\n".encode(), 0)

    def release(self) -> None:
        """Give it up, as far as this process has it."""
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
