"""Places that may have a whole copy of a lost commit: the replicas of the stream, and backups."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import attrs

from eventlog.admin.backup import BackupInvalid, described, restore
from eventlog.admin.repair.diagnosis import Fault
from eventlog.admin.throw_away import throw_away_server
from eventlog.errors import UndecodableCommit
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.registry import Registry
from eventlog.support.chain import digest_of, has_guard

_TRIES = 40
"""Direct reads of one record: each is answered by a replica at random, so all of three are asked with near certainty."""

_ENVELOPES = Registry()
"""Decodes the parts that every commit has: these need no type of the log."""


class RepairSource(Protocol):
    """A place that may have lost commits."""

    @property
    def name(self) -> str:
        """The place, for people."""

    async def record(self, fault: Fault) -> StoredMessage | None:
        """The record of a damaged sequence, None if it is not there or does not fit. Raises Unavailable."""


def fits(fault: Fault, stored: StoredMessage) -> bool:
    """Whether a record may be the lost one: a guarded commit of the right aggregate, with the digest that the next one names."""
    if fault.subject is not None and stored.subject != fault.subject:
        return False
    if not has_guard(stored.headers) or not _is_commit(stored):
        return False
    return fault.digest is None or digest_of(stored.subject, stored.data) == fault.digest


def _is_commit(stored: StoredMessage) -> bool:
    try:
        _ = stored.commit(_ENVELOPES).body
    except UndecodableCommit:
        return False
    return True


@attrs.frozen
class Replicas:
    """The servers that hold the stream, each with its own files."""

    reader: MessageReader
    name: str = "a replica"

    async def record(self, fault: Fault) -> StoredMessage | None:
        """See `RepairSource`."""
        for _ in range(_TRIES):
            stored = await self.reader.direct({"seq": fault.sequence})
            if stored is not None and fits(fault, stored):
                return stored
        return None


@attrs.frozen
class Backup:
    """A backup, restored on a throw-away server; `last` is its last sequence, `stream` reads the damaged stream."""

    name: str
    last: int
    reader: MessageReader
    stream: MessageReader

    async def record(self, fault: Fault) -> StoredMessage | None:
        """See `RepairSource`. The backup has to agree with the stream on the records around the lost one."""
        if fault.sequence > self.last:
            return None
        stored = await self.reader.leader({"seq": fault.sequence})
        if stored is None or not fits(fault, stored):
            return None
        agrees = await self._agrees(fault.sequence, -1) and await self._agrees(fault.sequence, 1)
        return stored if agrees else None

    async def _agrees(self, sequence: int, step: int) -> bool:
        """Whether the nearest record on one side is the same in both; True if no record on that side is in both."""
        at = sequence + step
        while 0 < at <= self.last:
            ours, theirs = await self.stream.leader({"seq": at}), await self.reader.leader({"seq": at})
            if ours is not None and theirs is not None:
                return (ours.subject, ours.data) == (theirs.subject, theirs.data)
            at += step
        return True


@asynccontextmanager
async def backup_source(directory: Path, connection: Connection, stream: str, incarnation: str) -> AsyncIterator[Backup]:
    """Restore the copy of a stream in a directory on a throw-away server, for the block.

    Raises BackupInvalid if the directory has no copy of this incarnation of the stream, ServerFailed, Unavailable.
    """
    file = directory / f"{stream}.json"
    if not file.is_file():
        raise BackupInvalid(f"there is no copy of {stream} in {directory}")
    copied = described(file)
    found = (copied.config.get("metadata") or {}).get("incarnation")
    if found is not None and found != incarnation:
        raise BackupInvalid(f"{file} is of another incarnation of {stream} ({found}): its commits are of another log")
    async with throw_away_server(max_payload=connection.max_payload) as own:
        await restore(own, file, changes={"max_bytes": -1, "allow_direct": True})
        yield Backup(f"backup {directory}", copied.last, MessageReader(own, stream), MessageReader(connection, stream))
