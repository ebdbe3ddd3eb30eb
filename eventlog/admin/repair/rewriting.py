"""Write the records of a stream once more, with whole copies or tombstones in the damaged places, on a throw-away server.

JetStream cannot write a sequence a second time. So all records are published in order to an empty stream of the same name: each
gets the sequence that it had, and its guard is checked once more by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import uuid4

import attrs
import msgspec

from eventlog.admin.repair.diagnosis import Fault, records
from eventlog.errors import EventLogError
from eventlog.jetstream.append import Ack
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.registry import Registry
from eventlog.support.chain import (
    GUARD,
    TOMBSTONE,
    CommitBody,
    CommitLost,
    EventBody,
    StateBody,
    beginning,
    digest_of,
    fingerprints,
    rolled,
    text_of,
)

_TOGETHER = 256
_TIMEOUT = 30.0
DUPLICATES = 100_000_000
"""Nanoseconds: the shortest duplicate window that nats-server takes."""
_FORGOTTEN = 0.25
"""Seconds after which the throw-away server has surely forgotten a message id."""
_ID = b"Nats-Msg-Id:"
_OF_READS = (
    b"Nats-Stream:",
    b"Nats-Subject:",
    b"Nats-Sequence:",
    b"Nats-Time-Stamp:",
    b"Nats-Num-Pending:",
    b"Nats-Last-Sequence:",
)
_OF_BATCHES = b"Nats-Batch-"


class RewriteFailed(EventLogError):
    """A record did not get the sequence that it had. The damaged stream is unchanged."""


@attrs.frozen(kw_only=True)
class Operator:
    """The person who accepts that commits are lost, with the reason."""

    name: str
    reason: str


@attrs.frozen
class RewrittenRecord:
    """A record of a stream, to be written once more; `headers` are lines as on the wire."""

    sequence: int
    subject: str
    data: bytes
    headers: bytes


def headers_of(stored: StoredMessage) -> bytes:
    """The headers that a record was published with, without the headers of reads and batches."""
    lines = (stored.headers or b"").split(b"\r\n")[1:]
    return b"".join(line + b"\r\n" for line in lines if line and not line.startswith((*_OF_READS, _OF_BATCHES)))


class Rewriting:
    """Writes one stream to a throw-away server. `digests` has the running digest at the sequences of `wanted`."""

    def __init__(self, target: Connection, stream: str, registry: Registry, wanted: Sequence[int] = ()) -> None:
        self._target = target
        self._stream = stream
        self._registry = registry
        self._wanted = frozenset(wanted)
        self._written = MessageReader(target, stream)
        self._waiting: list[RewrittenRecord] = []
        self._ids: set[bytes] = set()
        self.digest = beginning(stream)
        self.digests: dict[int, str] = {}

    async def write(
        self,
        source: MessageReader,
        end: int,
        replaced: Mapping[int, StoredMessage],
        lost: Mapping[int, Fault],
        operator: Operator | None,
    ) -> None:
        """Write all records up to `end`: `replaced` ones from their copies, and a tombstone for each one that is `lost`.

        Raises RewriteFailed, Unavailable.
        """
        async for sequence, stored in records(source, 1, end):
            whole = replaced.get(sequence, stored)
            if sequence in lost:
                assert operator is not None
                await self._flush()
                await self._put(await self._tombstone(lost[sequence], operator))
            elif whole is None:
                raise RewriteFailed(f"sequence {sequence} became unreadable during the repair: run it again")
            else:
                await self._put(RewrittenRecord(sequence, whole.subject, whole.data, headers_of(whole)))
        await self._flush()

    async def _put(self, record: RewrittenRecord) -> None:
        found = [line for line in record.headers.split(b"\r\n") if line.startswith(_ID)]
        if (
            found and found[0] in self._ids
        ):  # a key that was used once more, after the window: the server may take it for a repetition
            await self._flush()
            await asyncio.sleep(_FORGOTTEN)
            self._ids.clear()
        self._ids.update(found)
        self._waiting.append(record)
        if len(self._waiting) == _TOGETHER:
            await self._flush()

    async def _flush(self) -> None:
        some, self._waiting = self._waiting, []
        replies = await asyncio.gather(
            *(self._target.request(one.subject, one.data, headers=one.headers, timeout=_TIMEOUT) for one in some)
        )
        for record, reply in zip(some, replies, strict=True):
            ack = msgspec.json.decode(reply.data, type=Ack)
            if ack.error is not None or ack.duplicate or ack.seq != record.sequence:
                text = f"sequence {record.sequence} of {self._stream} cannot be written again"
                raise RewriteFailed(f"{text}: {ack.error or f'it became sequence {ack.seq}'}. The stream is unchanged")
            self.digest = rolled(self.digest, fingerprints([record]))
            if record.sequence in self._wanted:
                self.digests[record.sequence] = text_of(self.digest)

    async def _tombstone(self, fault: Fault, operator: Operator) -> RewrittenRecord:
        """The tombstone of a lost commit: the state of its aggregate stays as it was before, if nothing later says otherwise."""
        subject = fault.subject or f"{self._registry.categories[0]}.lost-{fault.sequence}"
        before = await self._written.leader({"last_by_subj": subject})
        state = StateBody(msgspec.Raw(b"null"))
        if before is not None and fault.digest is None:
            state = msgspec.json.decode(before.data, type=CommitBody).state
        lost = CommitLost(sequence=fault.sequence, operator=operator.name, reason=operator.reason, replaces=fault.digest)
        data = msgspec.json.encode(
            CommitBody(
                id=f"lost-{uuid4().hex}",
                at=datetime.now(UTC),
                prev=None if before is None else digest_of(before.subject, before.data),
                events=[EventBody("CommitLost", msgspec.Raw(msgspec.json.encode(lost)))],
                state=state,
            )
        )
        assert data.startswith(TOMBSTONE)
        return RewrittenRecord(fault.sequence, subject, data, f"{GUARD}: {0 if before is None else before.sequence}\r\n".encode())
