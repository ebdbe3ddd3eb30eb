"""Repair of a stream: plan, freeze it, write it again with the lost commits in their places, check that, and put it in its place.

JetStream cannot write a sequence a second time. So all records are published in order to an empty stream of the same name on a
throw-away server: whole copies or tombstones are in the damaged places. Each record gets the sequence that it had, and its guard
is checked once more by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import msgspec
import structlog

from eventlog.admin.backup import back_up, check_copy, described, encoded, restore, throw_away_server
from eventlog.admin.diagnosis import Diagnosis, Fault, RepairSource, Witness, each_leads, records
from eventlog.commit import Registry
from eventlog.errors import EventLogError
from eventlog.jetstream.api import (
    INCARNATION,
    MessageReader,
    StoredMessage,
    ask,
    call,
    check_whole,
    closed,
    incarnation_of,
    is_closed,
    opened,
)
from eventlog.jetstream.append import Ack
from eventlog.jetstream.connection import Connection
from eventlog.port import after_repair
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
from eventlog.support.files import sync

log = structlog.get_logger(__name__)

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
    """Writes one stream to a throw-away server. `digests` has the running digest at the sequences of `marks`."""

    def __init__(self, target: Connection, stream: str, registry: Registry, marks: Sequence[int]) -> None:
        self._target = target
        self._stream = stream
        self._registry = registry
        self._marks = frozenset(marks)
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
        ids = [line for line in record.headers.split(b"\r\n") if line.startswith(_ID)]
        if (
            ids and ids[0] in self._ids
        ):  # a key that was used once more, after the window: the server may take it for a repetition
            await self._flush()
            await asyncio.sleep(_FORGOTTEN)
            self._ids.clear()
        self._ids.update(ids)
        self._waiting.append(record)
        if len(self._waiting) == _TOGETHER:
            await self._flush()

    async def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        replies = await asyncio.gather(
            *(self._target.request(record.subject, record.data, headers=record.headers, timeout=_TIMEOUT) for record in batch)
        )
        for record, reply in zip(batch, replies, strict=True):
            ack = msgspec.json.decode(reply.data, type=Ack)
            if ack.error is not None or ack.duplicate or ack.seq != record.sequence:
                text = f"sequence {record.sequence} of {self._stream} cannot be written again"
                raise RewriteFailed(f"{text}: {ack.error or f'it became sequence {ack.seq}'}. The stream is unchanged")
            self.digest = rolled(self.digest, fingerprints([record]))
            if record.sequence in self._marks:
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


# The repair of a stream


DAMAGED, REPAIRED = "damaged", "repaired"
"""Directories of the two copies: the stream before and after the repair."""
_REPAIRS = "repairs"
_KEPT = 50
"""Repairs that a stream keeps in its metadata."""


class RepairRefused(EventLogError):
    """The stream cannot be repaired with the given sources; it is unchanged."""

    status = HTTPStatus.CONFLICT


@attrs.frozen(kw_only=True)
class Remedy:
    """The remedy of one fault: `stored` from a `source`; without it a tombstone, or none if `source` is empty."""

    fault: Fault
    source: str
    stored: StoredMessage | None = None

    def __str__(self) -> str:
        remedy = f"restored from {self.source}" if self.stored else self.source or "no source has it"
        return f"{self.fault}: {remedy}"


@attrs.frozen(kw_only=True)
class Repair:
    """A plan, or the result of it. `frozen`: an earlier repair did not end. `same`: positions and tables stay valid."""

    stream: str
    incarnation: str
    end: int
    remedies: Sequence[Remedy]
    frozen: bool = False
    same: bool = True

    @property
    def without_remedy(self) -> Sequence[Remedy]:
        """The faults without a remedy."""
        return [remedy for remedy in self.remedies if not remedy.source]


async def repairs(connection: Connection, stream: str) -> Sequence[Mapping[str, Any]]:
    """The repairs that a stream has had, oldest first: `sequence`, `remedy`, `at`, `operator`. Raises Unavailable."""
    return _noted((await ask(connection, f"STREAM.INFO.{stream}"))["config"])


def _made_empty(directory: Path) -> bool:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return next(directory.iterdir(), None) is None


def _noted(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = msgspec.json.decode((config.get("metadata") or {}).get(_REPAIRS, "[]"))
    return notes


@attrs.frozen(eq=False)
class StreamRepair:
    """Repairs one stream from `sources`, and with tombstones if an `operator` accepts the loss. `witness`: see its class."""

    _connection: Connection
    _stream: str
    _registry: Registry
    _sources: Sequence[RepairSource] = attrs.field(kw_only=True)
    _witness: Witness = attrs.field(kw_only=True)
    _operator: Operator | None = attrs.field(default=None, kw_only=True)

    async def plan(self) -> Repair:
        """Find the damage and a remedy of each fault, without changing anything. Raises RepairRefused, Unavailable."""
        info = await self._info()
        end = info["state"]["last_seq"]
        faults = await self._faults(end, info["config"]["num_replicas"])
        return Repair(
            stream=self._stream,
            incarnation=incarnation_of(info),
            end=max(end, self._witness.sequence),
            remedies=[await self._remedy(fault) for fault in faults],
            frozen=is_closed(info["config"]),
        )

    async def _faults(self, end: int, replicas: int) -> Sequence[Fault]:
        """The faults in the order of their sequences; on a cluster the faults of every server."""
        faults: dict[int, Fault] = {}
        if replicas == 1:
            diagnosis = Diagnosis()
            await diagnosis.read(self._connection, self._stream, end, self._witness)
            faults = diagnosis.faults
        else:
            async for _ in each_leads(self._connection, self._stream):
                diagnosis = Diagnosis()
                await diagnosis.read(self._connection, self._stream, end, self._witness, leader=True)
                faults |= diagnosis.faults
        return [faults[sequence] for sequence in sorted(faults)]

    async def _remedy(self, fault: Fault) -> Remedy:
        for source in self._sources:
            if (stored := await source.record(fault)) is not None:
                return Remedy(fault=fault, source=source.name, stored=stored)
        return Remedy(fault=fault, source="" if self._operator is None else f"tombstone by {self._operator.name}")

    async def apply(self, directory: Path) -> Repair:
        """Repair the stream. `directory`, which must be empty, gets a copy of it from before and one from after.

        Writers get 503 until it ends. Until the last step an error leaves the stream as it was.
        Raises RepairRefused, RewriteFailed, CopyDamaged, Unavailable.
        """
        if not await asyncio.to_thread(_made_empty, directory):
            raise RepairRefused(f"{directory} is not empty: a repair needs an empty directory for its copies")
        config = await self._freeze()
        try:
            plan = await self._prepared(config, directory)
        except BaseException:
            await self._update(config)
            raise
        if not plan.remedies:
            await self._update(config)
            return plan
        await self._exchange(directory, config["num_replicas"])
        log.warning("stream repaired", stream=self._stream, places=len(plan.remedies), same=plan.same)
        return plan

    async def _prepared(self, config: Mapping[str, Any], directory: Path) -> Repair:
        """Make the two copies; none if the stream is whole."""
        plan = await self.plan()
        if plan.without_remedy:
            raise RepairRefused(
                f"{len(plan.without_remedy)} damaged places have no remedy, the first: {plan.without_remedy[0]}. Name a backup "
                "with --from-backup, or accept the loss with --tombstone"
            )
        if not plan.remedies:
            return plan
        for name in (DAMAGED, REPAIRED):
            (directory / name).mkdir(mode=0o700)
        await asyncio.to_thread(sync, directory)
        await back_up(self._connection, self._stream, directory / DAMAGED)
        return await self._rewritten(plan, config, directory / REPAIRED)

    async def _freeze(self) -> dict[str, Any]:
        """Close the stream, so that no process can write to it; gives the configuration of the open stream."""
        config = (await self._info())["config"]
        await self._update(closed(config))
        return opened(config)

    async def _info(self) -> dict[str, Any]:
        """The server's information on the stream. Raises StreamClosed if it is being restored, Unavailable."""
        info = await ask(self._connection, f"STREAM.INFO.{self._stream}")
        check_whole(info)
        return info

    async def _update(self, config: Mapping[str, Any]) -> None:
        await call(self._connection, f"STREAM.UPDATE.{self._stream}", config)

    async def _rewritten(self, repair: Repair, config: Mapping[str, Any], directory: Path) -> Repair:
        """Make the copy that will take the place of the stream. Raises RepairRefused, RewriteFailed, CopyDamaged."""
        replaced = {remedy.fault.sequence: remedy.stored for remedy in repair.remedies if remedy.stored is not None}
        lost = {remedy.fault.sequence: remedy.fault for remedy in repair.remedies if remedy.stored is None}
        async with throw_away_server(max_payload=self._connection.max_payload, directory=directory) as target:
            changes = {"num_replicas": 1, "max_bytes": -1, "duplicate_window": DUPLICATES, "allow_atomic": False}
            await call(target, f"STREAM.CREATE.{self._stream}", {**config, **changes})
            rewriting = Rewriting(target, self._stream, self._registry, [self._witness.sequence])
            source = MessageReader(self._connection, self._stream)
            await rewriting.write(source, repair.end, replaced, lost, self._operator)
            same = self._same(lost, rewriting)
            await back_up(target, self._stream, directory)
        file = directory / f"{self._stream}.json"
        metadata = {
            **config["metadata"],
            INCARNATION: repair.incarnation if same else after_repair(repair.incarnation),
            _REPAIRS: msgspec.json.encode([*_noted(config), *self._notes(repair)][-_KEPT:]).decode(),
        }
        copy = attrs.evolve(
            described(file), config={**config, "metadata": metadata}, digest=text_of(rewriting.digest), verified=True
        )
        await asyncio.to_thread(file.write_bytes, encoded(copy))
        await check_copy(file)
        await asyncio.to_thread(sync, file)
        return attrs.evolve(repair, same=same)

    def _same(self, lost: Mapping[int, Fault], rewriting: Rewriting) -> bool:
        """Whether the repaired stream is the one that was written, so that the tables stay valid. Raises RepairRefused."""
        if lost:
            return False
        known, rewritten = self._witness.digest, rewriting.digests.get(self._witness.sequence)
        if known is not None and rewritten is not None and known != rewritten:
            raise RepairRefused(
                f"the repaired {self._stream} is not the log that the tables were made from, up to sequence "
                f"{self._witness.sequence}: a source has other commits. The stream is unchanged"
            )
        return True

    def _notes(self, plan: Repair) -> list[dict[str, Any]]:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        by = {} if self._operator is None else {"operator": self._operator.name, "reason": self._operator.reason}
        return [{"sequence": remedy.fault.sequence, "remedy": str(remedy), "at": at, **by} for remedy in plan.remedies]

    async def _exchange(self, directory: Path, replicas: int) -> None:
        """Put the repaired copy in the place of the stream, which has a copy too."""
        file = directory / REPAIRED / f"{self._stream}.json"
        await call(self._connection, f"STREAM.DELETE.{self._stream}")
        try:
            await restore(self._connection, file, replicas=replicas)
        except BaseException:  # also if the operator ends the program: the stream is not there until the command is run
            log.warning("the repaired stream is not restored yet", command=f"projections streams restore {file.parent}")
            raise
