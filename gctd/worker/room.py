"""The room on the disks of a worker. It takes no job while there is no room for one."""

from __future__ import annotations

from pathlib import Path

import attrs

from gctd.scan.cache.directory import Cache
from gctd.scan.disk import LEAST_FREE, MIB, free_bytes


@attrs.frozen
class Room:
    """The room on the disks of the cache and of the folders of jobs."""

    _cache: Cache

    def shortage(self) -> str:
        """Return the reason for which no job may begin: too little is free, or it is not known; empty if there is room."""
        for directory in (self._cache.directory, self._cache.jobs):
            if reason := _shortage(directory):
                return reason
        return ""

    async def made(self) -> str:
        """Remove caches if there is too little room. Return the shortage after that."""
        if not self.shortage():
            return ""
        await self._cache.make_room()
        return self.shortage()


def _shortage(directory: Path) -> str:
    try:
        free = free_bytes(directory)
    except OSError as error:
        return f"the free space of {directory} is not known: {error.strerror}"
    if free < LEAST_FREE:
        return f"disk full: {free // MIB} MiB free in {directory}, and a job needs {LEAST_FREE // MIB} MiB"
    return ""
