"""The process that writes to the database at an address, as others see it."""

from __future__ import annotations

import time
from pathlib import Path

import attrs

from projections.stores.databases import path_of
from projections.stores.sqlite.lock import LEASE, read_owner


@attrs.frozen
class DatabaseLeader:
    """A process that keeps a lease on a database: `holder` names it, `silent` are the seconds since its last heartbeat."""

    holder: str
    silent: float
    lease: float

    @property
    def hangs(self) -> bool:
        """Whether its lease has run out."""
        return self.silent > self.lease


async def leader_at(url: str) -> DatabaseLeader | None:
    """The process with the lease on the database at an address; None if there is none. Raises StoreUnavailable."""
    file = path_of(url)
    if file is not None:
        return _of_file(file)
    from projections.stores.postgres import election, lease  # noqa: PLC0415 - slow

    found = await election.leader_at(url)
    return None if found is None else DatabaseLeader(found.holder, found.silent, lease.SECONDS)


def _of_file(file: Path) -> DatabaseLeader | None:
    lock = file.with_name(f"{file.name}.lock")
    try:
        owner, beaten = read_owner(lock.read_bytes()), lock.stat().st_mtime
    except FileNotFoundError:
        return None
    return (
        None
        if owner is None or not owner.alive
        else DatabaseLeader(f"process {owner.pid}", max(0.0, time.time() - beaten), LEASE)
    )
