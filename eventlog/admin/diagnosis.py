"""The damaged sequences of a stream, everything that is still known of the commit at each of them, and places that may have it.

The next commit of the same aggregate names the sequence of the lost commit (its guard) and the digest of it (`prev`). If there is
no next commit, the server still counts the record, so the aggregate with more records than can be read is the one that lost it.
A replica of the stream or a backup may have a whole copy of the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Protocol

import attrs

from eventlog.admin.backup import BackupInvalid, described, restore, throw_away_server
from eventlog.commit import Registry
from eventlog.errors import Unavailable, UndecodableCommit
from eventlog.jetstream.api import INCARNATION, MessageReader, Refused, StoredMessage, ask, call, subjects_of
from eventlog.jetstream.connection import Connection
from eventlog.support.chain import Break, LinkChecker, LinkedCommit, digest_of, fingerprints, has_guard, link_fault

_TOGETHER = 512
_ELECTED_WITHIN = 60.0
_PATIENCE = 5.0
"""Seconds that an election may take before the lead is handed on once more."""
_PAUSE = 0.5
UNREADABLE = "the record cannot be read"
MISSING = "the log ends before it"
CHANGED = "it is not the commit that the next one of its aggregate follows"


@attrs.frozen(kw_only=True)
class Fault:
    """A damaged sequence. `subject` is the aggregate and `digest` the digest of the lost commit, None if they are not known."""

    sequence: int
    problem: str
    subject: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        return f"sequence {self.sequence}{f', {self.subject}' if self.subject else ''}: {self.problem}"


async def _unknown(sequence: int) -> str | None:  # noqa: ARG001 - one of many forms
    return None


@attrs.frozen(kw_only=True)
class Witness:
    """The knowledge that the tables have of the log: the sequence they have reached, and the running digest there.

    `digest` is in hexadecimal, None if it is not known. `subject_at` gives the aggregate of a commit with an idempotency key.
    """

    sequence: int = 0
    digest: str | None = None
    subject_at: Callable[[int], Awaitable[str | None]] = _unknown


async def records(
    reader: MessageReader, begin: int, end: int, *, leader: bool = False
) -> AsyncIterator[tuple[int, StoredMessage | None]]:
    """Each sequence from `begin` to `end` with its record, None if the leader cannot read it. Raises Unavailable.

    `leader`: all records are read from the leader, not from the replica that answers first.
    """
    at = begin
    while at <= end and leader:
        yield at, await reader.leader({"seq": at})
        at += 1
    while at <= end:
        batch = await reader.several({"batch": _TOGETHER, "seq": at, "next_by_subj": ">"})
        readable = {stored.sequence: stored for stored in batch if stored.sequence <= end}
        last = max(readable, default=min(at + _TOGETHER - 1, end))
        for sequence in range(at, last + 1):
            yield sequence, readable.get(sequence) or await reader.leader({"seq": sequence})
        at = last + 1


class Diagnosis:
    """The state of a stream after one pass over it; `faults` are in the order of their sequences."""

    def __init__(self) -> None:
        self.faults: dict[int, Fault] = {}
        self._links = LinkChecker(inf)
        self._last: dict[str, int] = {}
        self._count: dict[str, int] = {}

    async def read(self, connection: Connection, stream: str, end: int, witness: Witness, *, leader: bool = False) -> None:
        """Read the stream up to sequence `end`; a sequence beyond that the tables have is missing. `leader`: see `records`.

        Raises Unavailable.
        """
        async for sequence, stored in records(MessageReader(connection, stream), 1, end, leader=leader):
            if stored is None:
                self.faults[sequence] = Fault(sequence=sequence, problem=UNREADABLE)
            else:
                self._take(stored)
        for sequence in range(end + 1, witness.sequence + 1):
            self.faults[sequence] = Fault(sequence=sequence, problem=MISSING)
        await self._name(connection, stream, witness)
        self.faults = dict(sorted(self.faults.items()))

    def _take(self, stored: StoredMessage) -> None:
        self._count[stored.subject] = self._count.get(stored.subject, 0) + 1
        self._last[stored.subject] = stored.sequence
        looked = self._links.look([stored], fingerprints([stored]))
        for fault in looked.faults.values():
            if fault.kind is Break.DIGEST and fault.guard is not None:
                self.faults[fault.guard] = Fault(sequence=fault.guard, problem=CHANGED, subject=fault.subject, digest=fault.prev)
            else:
                self.faults[fault.sequence] = Fault(sequence=fault.sequence, problem=fault.problem, subject=fault.subject)
        for commit in looked.unread:
            self._name_lost(commit)

    def _name_lost(self, commit: LinkedCommit) -> None:
        """A commit follows one that was not read: it names the aggregate and the digest of the lost one."""
        fault = link_fault(commit, None)
        assert fault is not None
        lost = self.faults.get(fault.guard or 0)
        if lost is not None:
            self.faults[lost.sequence] = attrs.evolve(lost, subject=fault.subject, digest=fault.prev)
        else:  # a commit of another aggregate is there
            self.faults[fault.sequence] = Fault(sequence=fault.sequence, problem=Break.GUARD.value, subject=fault.subject)

    async def _name(self, connection: Connection, stream: str, witness: Witness) -> None:
        """Find the aggregates of lost commits that no later commit names."""
        for sequence, fault in self.faults.items():
            if fault.subject is None:
                self.faults[sequence] = attrs.evolve(fault, subject=await witness.subject_at(sequence))
        if not any(fault.subject is None and fault.problem == UNREADABLE for fault in self.faults.values()):
            return
        counted = await subjects_of(connection, stream, ">")
        missing = {subject: count - self._count.get(subject, 0) for subject, count in counted.items()}
        for fault in self.faults.values():
            if fault.subject is not None and fault.problem == UNREADABLE:
                missing[fault.subject] = missing.get(fault.subject, 0) - 1
        subjects = [subject for subject, count in sorted(missing.items()) for _ in range(count)]
        for sequence, fault in self.faults.items():
            if fault.subject is None and fault.problem == UNREADABLE and subjects:
                earlier = [subject for subject in subjects if self._last.get(subject, 0) < sequence]
                if earlier:
                    subjects.remove(earlier[0])
                    self.faults[sequence] = attrs.evolve(fault, subject=earlier[0])


async def each_leads(connection: Connection, stream: str) -> AsyncIterator[str]:
    """Let each server of a cluster lead the stream in turn, for one round of the loop. Yield its name. Raises Unavailable.

    A damaged record on one server is found only while that server leads: no other server reads its files. If one server alone
    has the stream, there is one round with an empty name.
    """
    cluster = (await ask(connection, f"STREAM.INFO.{stream}")).get("cluster") or {}
    replicas = cluster.get("replicas")
    if not replicas:
        yield ""
        return
    for name in sorted({cluster["leader"], *(replica["name"] for replica in replicas)}):
        await _make_leader(connection, stream, name)
        yield name


async def _make_leader(connection: Connection, stream: str, name: str) -> None:
    """Make a server the leader, with repeated requests until it is elected. Raises Unavailable."""
    try:
        async with asyncio.timeout(_ELECTED_WITHIN):
            elected = await _leader_of(connection, stream) == name
            while not elected:
                with contextlib.suppress(Refused, Unavailable):
                    await call(connection, f"STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": name}})
                elected = await _elected(connection, stream, name)
    except TimeoutError as error:
        raise Unavailable(
            f"the server {name} did not become the leader of {stream} within {_ELECTED_WITHIN:g} s, so its files were not read. "
            "Start it, or remove it from the stream, and repeat the command"
        ) from error


async def _elected(connection: Connection, stream: str, name: str) -> bool:
    """Wait until a server leads, some seconds at most: a server that was elected just now may not hand the lead on yet."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        await asyncio.sleep(_PAUSE)
        if await _leader_of(connection, stream) == name:
            return True
    return False


async def _leader_of(connection: Connection, stream: str) -> str | None:
    """The server that leads. None during an election: no server answers then."""
    try:
        info = await ask(connection, f"STREAM.INFO.{stream}")
    except Unavailable:
        return None
    leader: str | None = info["cluster"].get("leader")
    return leader


# Places that may have a lost commit


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
    other = (copied.config.get("metadata") or {}).get(INCARNATION)
    if other is not None and other != incarnation:
        raise BackupInvalid(f"{file} is of another incarnation of {stream} ({other}): its commits are of another log")
    async with throw_away_server(max_payload=connection.max_payload) as own:
        await restore(own, file, changes={"max_bytes": -1, "allow_direct": True})
        yield Backup(f"backup {directory}", copied.last, MessageReader(own, stream), MessageReader(connection, stream))
