"""Whether a copy of a stream can be restored and read: it is restored on a throw-away server, and every record is read back.

The server that makes a snapshot copies files, also damaged ones, and does not report records that it cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from math import inf
from pathlib import Path

from eventlog.admin.backup import StreamCopy, described, restore
from eventlog.admin.throw_away import throw_away_server
from eventlog.errors import EventLogError
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.support.chain import Break, LinkChecker, LinkedCommit, beginning, fingerprints, rolled, text_of

_TOGETHER = 512
_COMMIT = b'{"id":"'
"""How each commit begins: a stream whose first record is a commit is an event log."""
_MOST = 5
"""Places that are named of many."""


class CopyDamaged(EventLogError):
    """A copy of a stream cannot be restored, or not all of it can be read."""

    status = HTTPStatus.CONFLICT


async def check_copy(file: Path) -> str:
    """Restore a copy (by its description) on a throw-away server and read all: the running digest of its records.

    Raises BackupInvalid, CopyDamaged, ServerFailed if no server can be started here.
    """
    copied = described(file)
    async with throw_away_server(directory=file.parent) as connection:
        try:
            await restore(connection, file, changes={"max_bytes": -1, "allow_direct": True})
        except EventLogError as error:
            raise CopyDamaged(f"the copy of {copied.stream} cannot be restored: {error}") from error
        digest = await _read(connection, copied)
    if copied.digest not in {None, digest}:
        raise CopyDamaged(f"the copy of {copied.stream} has other records than when it was made: their digest is {digest}")
    return digest


async def _read(connection: Connection, copied: StreamCopy) -> str:
    """The running digest of all records. Raises CopyDamaged."""
    reader = MessageReader(connection, copied.stream)
    reading = _Reading(copied)
    after = 0
    while stored := await reader.several({"batch": _TOGETHER, "seq": after + 1, "next_by_subj": ">"}):
        reading.take(stored)
        after = stored[-1].sequence
    return reading.end()


class _Reading:
    """The records of a copy that were read so far."""

    def __init__(self, copied: StreamCopy) -> None:
        self._copied = copied
        self._digest = beginning(copied.stream)
        self._links = LinkChecker(inf)
        self._last, self._count = int(copied.state["first_seq"]) - 1, 0
        self._missing: list[int] = []
        self._broken: list[str] = []
        self._unread: list[LinkedCommit] = []
        self._is_log: bool | None = None

    def take(self, several: Sequence[StoredMessage]) -> None:
        """Some more records, in order."""
        made = fingerprints(several)
        self._digest = rolled(self._digest, made)
        for stored in several:
            if len(self._missing) <= _MOST:
                self._missing += range(self._last + 1, min(stored.sequence, self._last + _MOST + 2))
            self._last, self._count = stored.sequence, self._count + 1
        if self._is_log is None:
            self._is_log = several[0].data.startswith(_COMMIT)
        if self._is_log:
            looked = self._links.look(several, made)
            self._broken += [f"sequence {fault.sequence} of {fault.subject}: {fault.problem}" for fault in looked.faults.values()]
            self._unread += looked.unread

    def end(self) -> str:
        """The digest of all. Raises CopyDamaged."""
        copied = self._copied
        said = self._broken[:_MOST]
        if self._count != copied.messages:
            missing = [*self._missing, *range(self._last + 1, min(copied.last, self._last + _MOST) + 1)][:_MOST]
            places = f": sequences {', '.join(map(str, missing))}" if missing else ""
            said.insert(0, f"{copied.messages - self._count} of {copied.messages} records cannot be read{places}")
        elif self._unread and not said:  # otherwise a missing record is the reason
            said = [f"sequence {commit.sequence} of {commit.subject}: {Break.GUARD.value}" for commit in self._unread[:_MOST]]
        if said:
            raise CopyDamaged(
                f"the copy of {copied.stream} is damaged: {'; '.join(said)}. The stream on the server is then damaged as well. "
                "Keep the tables and older copies: they may be the only place that has what cannot be read. Do not restart that "
                "nats-server before a copy is made with --unverified: it may cut the stream there"
            )
        return text_of(self._digest)
