"""Find the damaged sequences of a stream, and everything that is still known of the commit at each of them.

The next commit of the same aggregate names the sequence of the lost commit (its guard) and the digest of it (`prev`). If there is
no next commit, the server still counts the record, so the aggregate with more records than can be read is the one that lost it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf

import attrs

from eventlog.errors import Unavailable
from eventlog.jetstream.api import Refused, ask, call, subjects_of
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.support.chain import Break, LinkChecker, LinkedCommit, fingerprints, link_fault

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
        found = {stored.sequence: stored for stored in batch if stored.sequence <= end}
        last = max(found, default=min(at + _TOGETHER - 1, end))
        for sequence in range(at, last + 1):
            yield sequence, found.get(sequence) or await reader.leader({"seq": sequence})
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
        left = {subject: count - self._count.get(subject, 0) for subject, count in counted.items()}
        for fault in self.faults.values():
            if fault.subject is not None and fault.problem == UNREADABLE:
                left[fault.subject] = left.get(fault.subject, 0) - 1
        subjects = [subject for subject, count in sorted(left.items()) for _ in range(count)]
        for sequence, fault in self.faults.items():
            if fault.subject is None and fault.problem == UNREADABLE and subjects:
                fits = [one for one in subjects if self._last.get(one, 0) < sequence]
                if fits:
                    subjects.remove(fits[0])
                    self.faults[sequence] = attrs.evolve(fault, subject=fits[0])


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
