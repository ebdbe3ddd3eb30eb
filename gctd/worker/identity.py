"""The identity of a worker: an id that lasts over restarts, as a pause does, and a session that is new at each start."""

from __future__ import annotations

import os
import re
import socket
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import attrs

from gctd.domain.errors import BadInput, Refused
from gctd.scan.go.toolchain import target
from gctd.scan.isolation.locks import FileLock

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_ON_ONE_HOST = 1000


@attrs.frozen
class WorkerIdentity:
    """A worker's id, session, host and process; the file whose lock keeps a second process off the id."""

    id: str
    session: str
    host: str
    pid: int
    lock: FileLock = attrs.field(repr=False)

    def release(self) -> None:
        """Release the id for other processes."""
        self.lock.release()


def claim(cache: Path, wanted: str | None = None) -> WorkerIdentity:
    """Take the wanted id, or the first free id derived from the host's name and the worker's cache directory.

    A cache always has the same ids, so that they last. Another cache on the host has others, so that workers that cannot see
    each other's locks, which are files in `workers` of the cache, do not collide. Raises BadInput for an invalid id,
    Refused if the wanted one is taken.
    """
    host = socket.gethostname()
    if wanted is not None:
        if not _ID.fullmatch(wanted):
            raise BadInput("id", "an id has 1 to 64 characters out of A-Z a-z 0-9 _ -")
        names = [wanted]
    else:
        mark = sha256(os.fsencode(cache.resolve())).hexdigest()[:4]
        base = f"{re.sub(r'[^A-Za-z0-9_-]', '-', host)[:54] or 'worker'}-{mark}"
        names = [base, *(f"{base}-{number}" for number in range(2, MOST_ON_ONE_HOST))]
    directory = cache / "workers"
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (lock := FileLock.try_acquire(directory / f"{name}.lock")) is not None:
            return WorkerIdentity(name, uuid4().hex, host, os.getpid(), lock)
    raise Refused(f"a worker with the id {names[0]} is running already")


def host_platform() -> str:
    """Return operating system and architecture of this host as Go names them: `linux/amd64`."""
    return target().replace("-", "/", 1)
