"""Repair a stream: plan, freeze it, write it again with the lost commits in their places, check that, and put it in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs
import msgspec
import structlog

from eventlog.admin.backup import back_up, described, encoded, restore
from eventlog.admin.copy_check import check_copy
from eventlog.admin.repair.diagnosis import Diagnosis, Fault, Witness, each_leads
from eventlog.admin.repair.rewriting import DUPLICATES, Operator, Rewriting
from eventlog.admin.repair.sources import RepairSource
from eventlog.admin.throw_away import throw_away_server
from eventlog.errors import EventLogError
from eventlog.jetstream.api import INCARNATION, after_repair, ask, call, check_whole, closed, incarnation_of, is_closed, opened
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.registry import Registry
from eventlog.support.chain import text_of
from eventlog.support.files import sync

log = structlog.get_logger(__name__)

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
    def left(self) -> Sequence[Remedy]:
        """The faults without a remedy."""
        return [remedy for remedy in self.remedies if not remedy.source]


async def repairs(connection: Connection, stream: str) -> Sequence[Mapping[str, Any]]:
    """The repairs that a stream has had, oldest first: `sequence`, `remedy`, `at`, `operator`. Raises Unavailable."""
    return _noted((await ask(connection, f"STREAM.INFO.{stream}"))["config"])


def _made_empty(directory: Path) -> bool:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return next(directory.iterdir(), None) is None


def _noted(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode((config.get("metadata") or {}).get(_REPAIRS, "[]"))
    return found


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
        found: dict[int, Fault] = {}
        if replicas == 1:
            diagnosis = Diagnosis()
            await diagnosis.read(self._connection, self._stream, end, self._witness)
            found = diagnosis.faults
        else:
            async for _ in each_leads(self._connection, self._stream):
                diagnosis = Diagnosis()
                await diagnosis.read(self._connection, self._stream, end, self._witness, leader=True)
                found |= diagnosis.faults
        return [found[sequence] for sequence in sorted(found)]

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
        if plan.left:
            raise RepairRefused(
                f"{len(plan.left)} damaged places have no remedy, the first: {plan.left[0]}. Name a backup with "
                "--from-backup, or accept the loss with --tombstone"
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

    async def _rewritten(self, plan: Repair, config: Mapping[str, Any], directory: Path) -> Repair:
        """Make the copy that will take the place of the stream. Raises RepairRefused, RewriteFailed, CopyDamaged."""
        replaced = {one.fault.sequence: one.stored for one in plan.remedies if one.stored is not None}
        lost = {one.fault.sequence: one.fault for one in plan.remedies if one.stored is None}
        async with throw_away_server(max_payload=self._connection.max_payload, directory=directory) as target:
            changes = {"num_replicas": 1, "max_bytes": -1, "duplicate_window": DUPLICATES, "allow_atomic": False}
            await call(target, f"STREAM.CREATE.{self._stream}", {**config, **changes})
            rewriting = Rewriting(target, self._stream, self._registry, [self._witness.sequence])
            source = MessageReader(self._connection, self._stream)
            await rewriting.write(source, plan.end, replaced, lost, self._operator)
            same = self._same(lost, rewriting)
            await back_up(target, self._stream, directory)
        file = directory / f"{self._stream}.json"
        metadata = {
            **config["metadata"],
            INCARNATION: plan.incarnation if same else after_repair(plan.incarnation),
            _REPAIRS: msgspec.json.encode([*_noted(config), *self._notes(plan)][-_KEPT:]).decode(),
        }
        copied = attrs.evolve(
            described(file), config={**config, "metadata": metadata}, digest=text_of(rewriting.digest), verified=True
        )
        await asyncio.to_thread(file.write_bytes, encoded(copied))
        await check_copy(file)
        await asyncio.to_thread(sync, file)
        return attrs.evolve(plan, same=same)

    def _same(self, lost: Mapping[int, Fault], rewriting: Rewriting) -> bool:
        """Whether the repaired stream is the one that was written, so that the tables stay valid. Raises RepairRefused."""
        if lost:
            return False
        known, made = self._witness.digest, rewriting.digests.get(self._witness.sequence)
        if known is not None and made is not None and known != made:
            raise RepairRefused(
                f"the repaired {self._stream} is not the log that the tables were made from, up to sequence "
                f"{self._witness.sequence}: a source has other commits. The stream is unchanged"
            )
        return True

    def _notes(self, plan: Repair) -> list[dict[str, Any]]:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        by = {} if self._operator is None else {"operator": self._operator.name, "reason": self._operator.reason}
        return [{"sequence": one.fault.sequence, "remedy": str(one), "at": at, **by} for one in plan.remedies]

    async def _exchange(self, directory: Path, replicas: int) -> None:
        """Put the repaired copy in the place of the stream, which has a copy too."""
        file = directory / REPAIRED / f"{self._stream}.json"
        await call(self._connection, f"STREAM.DELETE.{self._stream}")
        try:
            await restore(self._connection, file, replicas=replicas)
        except BaseException:  # also if the operator ends the program: the stream is not there until the command is run
            log.warning("the repaired stream is not restored yet", command=f"projections streams restore {file.parent}")
            raise
