"""Brings a server's streams, consumers and buckets to their declarations, as far as no message can be lost.

Missing ones are created. Differences are updated if no message can be lost by it. The others are shown and left to a person.
Several processes may apply the same declarations at the same moment. A service compares by `danger_of` while it runs.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import attrs
import structlog

from eventlog.admin.declarations import Consumer, Declarations, Stream
from eventlog.embedded.nats import DiskRoom
from eventlog.errors import Unavailable
from eventlog.jetstream.api import (
    CONSUMER_EXISTS,
    CONSUMER_MISSING,
    INCARNATION,
    NAME_IN_USE,
    NO_PEERS,
    STORAGE_EXCEEDED,
    STREAM_MISSING,
    Full,
    MessageReader,
    Refused,
    ask,
    call,
    incarnation_of,
    persist,
    reason_of,
)
from eventlog.jetstream.connection import Connection, Denied

_AT_ONCE = 256
_SEALED = re.compile(rb'"p":"([0-9a-f]{32})\.')


async def needed_keys(connection: Connection, stream: Stream) -> Collection[str]:
    """Return the ids of the keys of sealed events in the log, without the keys of erased persons. Raises Unavailable."""
    if stream.keys_of is None:
        return ()
    log, erased = stream.keys_of["stream"], f"{stream.keys_of['erased']}."
    try:
        last = (await ask(connection, f"STREAM.INFO.{log}"))["state"]["last_seq"]
    except Refused as error:
        if error.number != STREAM_MISSING:
            raise
        return ()
    reader, place, ids, gone = MessageReader(connection, log), 0, set[str](), set[str]()
    while place < last:
        messages = await reader.several({"batch": _AT_ONCE, "next_by_subj": ">", "seq": place + 1})
        if not messages:
            raise Unavailable(f"{log} ends at sequence {last}, and cannot be read after {place}")
        for message in messages:
            ids.update(id_.decode() for id_ in _SEALED.findall(message.data))
            if message.subject.startswith(erased):
                gone.add(message.subject.removeprefix(erased))
        place = messages[-1].sequence
    return ids - gone


log = structlog.get_logger(__name__)

PATIENCE = 15.0
"""Seconds: an election may take nine."""

AIM = "aim"
"""The key of the declared size in the metadata of a stream."""
MIB = 1024**2
LEAST = 8 * MIB
_DIVIDED = 0.9
_ROUNDS = 5
_METADATA = frozenset({INCARNATION, AIM})
_ALWAYS = frozenset({"description", "allow_direct", "duplicate_window", "num_replicas", "max_msg_size", INCARNATION})
_BEARABLE = frozenset({"description", "max_bytes", "max_msg_size", "num_replicas", "compression", INCARNATION, AIM})
"""Fields by which the server, whatever it has there, removes or moves no record, and hides none."""
_KEYS_REMEDY = "restore the copy of the keys, or `projections streams apply --new-keys` gives them up"
_FIXED_CONSUMER_FIELDS = frozenset({"deliver_policy", "ack_policy", "max_waiting"})

Action = Literal["create", "update", "by hand"]


@attrs.frozen
class Drift:
    """One difference between the declarations and the server.

    `kind` is "stream", "consumer", "key-value bucket" or "object bucket". `field` is empty if the whole thing is missing
    (`wanted` is then its configuration, `found` None). `action` is the action of `apply`. With "by hand" it does nothing, because
    the change could lose messages or the server does not make it.
    """

    kind: str
    name: str
    field: str
    wanted: Any
    found: Any
    action: Action

    def __str__(self) -> str:
        if not self.field:
            remedy = f": {_KEYS_REMEDY}" if self.action == "by hand" else ""
            return f"{self.kind} {self.name}: missing ({self.action}{remedy})"
        return f"{self.kind} {self.name}: {self.field} is {self.found!r}, declared {self.wanted!r} ({self.action})"


async def plan_changes(connection: Connection, declarations: Declarations, *, new_keys: bool = False) -> list[Drift]:
    """Return the differences on the server, without changing it. `new_keys` as in `apply_declarations`. Raises Unavailable."""
    infos = await asyncio.gather(
        *(_stream_info(connection, stream.name) for stream in declarations.streams),
        *(_consumer_info(connection, consumer) for consumer in declarations.consumers),
    )
    count = len(declarations.streams)
    streams = list(zip(declarations.streams, infos[:count], strict=True))
    lost = () if new_keys else [stream for stream, info in streams if info is None and await needed_keys(connection, stream)]
    return [
        *(
            attrs.evolve(drift, action="by hand") if stream in lost else drift
            for stream, info in streams
            for drift in _stream_drift(stream, info)
        ),
        *(
            drift
            for item, info in zip(declarations.consumers, infos[count:], strict=True)
            for drift in _consumer_drift(item, info)
        ),
    ]


def danger_of(stream: Stream, info: Mapping[str, Any] | None) -> str | None:
    """Return why an irreplaceable stream must not be written to: acknowledged records can be lost, or are lost. None: it may be.

    `info` is the server's answer to STREAM.INFO, None if there is no such stream.
    """
    if info is None:
        if stream.keys_of is not None:
            return f"the stream {stream.name} is missing: {_KEYS_REMEDY}"
        return f"the stream {stream.name} is missing: it was deleted, or a repair is about to put it back"
    if (reason := reason_of(info)) is not None:
        return reason
    reasons = []
    if drifts := [drift for drift in _stream_drift(stream, info) if not _is_bearable(drift)]:
        fields = ", ".join(f"{drift.field} is {drift.found!r}, declared {drift.wanted!r}" for drift in drifts)
        reasons.append(
            f"the stream {stream.name} is not as declared, so nats-server may remove, move or refuse what is stored: {fields}. "
            "`projections streams apply` sets it back, or names what is to be done by hand"
        )
    state = info["state"]
    if stream.config.get("deny_delete") and (lost := state["last_seq"] - state["messages"]) > 0:
        reasons.append(
            f"{lost} records of the stream {stream.name} are gone, which begins at sequence {state['first_seq']}: "
            "`projections repair` restores them from a backup"
        )
    return "; ".join(reasons) or None


def lacking_replicas(stream: Stream, info: Mapping[str, Any]) -> str | None:
    """Return a note on a stream that fewer servers hold than declared, or None."""
    drifts = [drift for drift in _stream_drift(stream, info) if drift.field == "num_replicas" and drift.found < drift.wanted]
    return str(drifts[0]) if drifts else None


async def apply_declarations(
    connection: Connection,
    declarations: Declarations,
    *,
    room: DiskRoom | None = None,
    patience: float = PATIENCE,
    new_keys: bool = False,
) -> list[Drift]:
    """Create and update all that may be changed, and return the other differences for a person. It is idempotent.

    With the `room` of the server, declared sizes are aims (see `fitted`). A stream of keys that is not there is left to
    a person if the log has events sealed with its keys, since a restore replaces no stream; with `new_keys` it is created.

    A cluster that has just been started may lack a leader or some of its servers. They are awaited for `patience` seconds. Raises
    Unavailable, also if the server lacks the storage that a stream asks for, and Refused for a declaration that the server does
    not understand.
    """

    async def applied() -> list[Drift]:
        sized = declarations if room is None else await _fitted(connection, declarations, room)
        return await _apply(connection, sized, new_keys=new_keys)

    left = await persist(connection, applied, patience)
    for drift in left:
        log.warning("declared otherwise than the server has it", what=str(drift))
    return left


async def _fitted(connection: Connection, declarations: Declarations, room: DiskRoom) -> Declarations:
    infos = await asyncio.gather(*(_stream_info(connection, stream.name) for stream in declarations.streams))
    return fitted(declarations, {info["config"]["name"]: info["config"] for info in infos if info is not None}, room)


async def _apply(connection: Connection, declarations: Declarations, *, new_keys: bool) -> list[Drift]:
    refused: set[tuple[str, str]] = set()
    remaining: list[Drift] = []
    for _ in range(_ROUNDS):  # another process may be first with any step: look again
        remaining = await plan_changes(connection, declarations, new_keys=new_keys)
        remaining = [attrs.evolve(d, action="by hand") if (d.kind, d.name) in refused else d for d in remaining]
        if all(drift.action == "by hand" for drift in remaining):
            break
        for (kind, name), drifts in groupby(remaining, key=lambda drift: (drift.kind, drift.name)):
            if not await _settle(connection, declarations, kind, name, list(drifts)):
                refused.add((kind, name))
    return remaining


async def _settle(connection: Connection, declarations: Declarations, kind: str, name: str, drifts: Sequence[Drift]) -> bool:
    """Do what is to be done about one thing; False where the server refuses the update, also to this user alone."""
    todo = [drift for drift in drifts if drift.action != "by hand"]
    if not todo:
        return True
    if kind == "consumer":
        consumer = next(item for item in declarations.consumers if item.name == name)
        if todo[0].action == "create":
            return await _create_consumer(connection, consumer)
        return await _update_consumer(connection, consumer, todo)
    stream = next(item for item in declarations.streams if item.name == name)
    if todo[0].action == "create":
        return await _create_stream(connection, stream)
    return await _update_stream(connection, stream, todo)


async def _create_stream(connection: Connection, stream: Stream) -> bool:
    config = {**stream.config, "name": stream.name}
    config["metadata"] = {
        **({INCARNATION: str(uuid.uuid4())} if stream.incarnation else {}),
        **({AIM: str(stream.aim)} if stream.aim is not None else {}),
    }
    try:
        await call(connection, f"STREAM.CREATE.{stream.name}", config)
    except Refused as error:
        if error.number == NAME_IN_USE:  # another process was first
            return True
        if error.number == NO_PEERS:
            raise Unavailable(f"the cluster has not the servers that {stream.name} asks for: {error.description}") from error
        if error.number != STORAGE_EXCEEDED:
            raise
        if await _stream_info(connection, stream.name) is not None:  # likewise; room is looked for before the name is
            return True
        raise Full(
            f"{stream.name} reserves {config['max_bytes']} bytes, more than the server has left: "
            f"make room on its disk, lower max_bytes of {stream.name} in streams.yaml, or raise max_file_store of the server"
        ) from error
    log.info("created", what=stream.kind, name=stream.name)
    return True


async def _update_stream(connection: Connection, stream: Stream, drifts: Sequence[Drift]) -> bool:
    info = await _stream_info(connection, stream.name)
    if info is None:
        return True
    config: dict[str, Any] = dict(info["config"])
    for drift in drifts:
        if drift.field in _METADATA:
            config["metadata"] = {**config.get("metadata", {}), drift.field: drift.wanted}
        else:
            config[drift.field] = drift.wanted
    return await _update(connection, f"STREAM.UPDATE.{stream.name}", config, drifts)


async def _create_consumer(connection: Connection, consumer: Consumer) -> bool:
    body = {"stream_name": consumer.stream, "config": {**consumer.config, "name": consumer.name}, "action": "create"}
    try:
        await call(connection, f"CONSUMER.CREATE.{consumer.stream}.{consumer.name}", body)
    except Refused as error:
        if error.number != CONSUMER_EXISTS:
            raise
        return True
    log.info("created", what="consumer", name=consumer.name)
    return True


async def _update_consumer(connection: Connection, consumer: Consumer, drifts: Sequence[Drift]) -> bool:
    info = await _consumer_info(connection, consumer)
    if info is None:
        return True
    config = dict(info["config"]) | {drift.field: drift.wanted for drift in drifts}
    body = {"stream_name": consumer.stream, "config": config, "action": "update"}
    return await _update(connection, f"CONSUMER.CREATE.{consumer.stream}.{consumer.name}", body, drifts)


async def _update(connection: Connection, request: str, body: Mapping[str, Any], drifts: Iterable[Drift]) -> bool:
    try:
        await call(connection, request, body)
    except (Refused, Denied) as error:
        log.warning("the server refuses an update", request=request, reason=str(error))
        return False
    for drift in drifts:
        log.info("updated", name=drift.name, field=drift.field, found=drift.found, wanted=drift.wanted)
    return True


async def _stream_info(connection: Connection, name: str) -> dict[str, Any] | None:
    try:
        return await ask(connection, f"STREAM.INFO.{name}")
    except Refused as error:
        if error.number != STREAM_MISSING:
            raise
        return None


async def _consumer_info(connection: Connection, consumer: Consumer) -> dict[str, Any] | None:
    try:
        return await ask(connection, f"CONSUMER.INFO.{consumer.stream}.{consumer.name}")
    except Refused as error:
        if error.number not in {CONSUMER_MISSING, STREAM_MISSING}:
            raise
        return None


def _stream_drift(stream: Stream, info: Mapping[str, Any] | None) -> Iterator[Drift]:
    if info is None:
        yield Drift(stream.kind, stream.name, "", dict(stream.config), None, "create")
        return
    config = info["config"]
    metadata = config.get("metadata", {})
    for field, wanted in stream.config.items():
        if field == "max_bytes" and stream.aim is None and metadata.get(AIM) == str(wanted):
            continue
        if not _same(wanted, has := config.get(field)):
            action: Action = "update" if _harmless(stream, field, wanted, config) else "by hand"
            yield Drift(stream.kind, stream.name, field, wanted, has, action)
    if stream.incarnation and INCARNATION not in metadata:
        yield Drift(stream.kind, stream.name, INCARNATION, incarnation_of(info), None, "update")
    if stream.aim is not None and metadata.get(AIM) != str(stream.aim):
        yield Drift(stream.kind, stream.name, AIM, str(stream.aim), metadata.get(AIM), "update")


def _consumer_drift(consumer: Consumer, info: Mapping[str, Any] | None) -> Iterator[Drift]:
    if info is None:
        yield Drift("consumer", consumer.name, "", dict(consumer.config), None, "create")
        return
    for field, wanted in consumer.config.items():
        if not _same(wanted, has := _consumer_field(info["config"], field)):
            action: Action = "by hand" if field in _FIXED_CONSUMER_FIELDS else "update"
            yield Drift("consumer", consumer.name, field, wanted, has, action)


def _consumer_field(config: Mapping[str, Any], field: str) -> Any:
    if field == "filter_subjects" and "filter_subject" in config:
        return [config["filter_subject"]]
    return config.get(field)


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, list) and wanted:
        return sorted(wanted) == sorted(found or [])
    return bool(wanted == found or (not found and not wanted))  # the server leaves out what is zero


def _harmless(stream: Stream, field: str, declared: Any, config: Mapping[str, Any]) -> bool:
    """Whether the update of a field cannot remove a message, nor hide one."""
    match field:
        case "subjects":
            return set(config.get(field, ())) <= set(declared)
        case "deny_delete" | "deny_purge" | "allow_atomic":
            return declared is True
        case "allow_rollup_hdrs":
            return declared is False
        case "discard":
            return bool(declared == "new")
        case "max_bytes" | "max_msgs":  # discard: new refuses what is too much instead of removing what is there
            return config.get("discard") == "new" or _wider(declared, config.get(field))
        case "max_age" | "max_msgs_per_subject":  # an entry of a bucket is only ever worth its newest value, while it lives
            return stream.kind == "key-value bucket" or _wider(declared, config.get(field))
        case _:
            return field in _ALWAYS


def _is_bearable(drift: Drift) -> bool:
    """Whether the value on the server neither costs a record nor changes its place. A newer program may have set a wider one."""
    match drift.field:
        case "subjects":
            return set(drift.wanted) <= set(drift.found or ())
        case "max_age" | "max_msgs" | "max_msgs_per_subject":
            return _wider(drift.found or 0, drift.wanted)
        case "duplicate_window":
            return bool((drift.found or 0) >= drift.wanted)
        case _:
            return drift.field in _BEARABLE


def _wider(wanted: int, found: int | None) -> bool:
    """Return whether a limit is at least as wide as another one. Below 1 there is no limit."""
    return wanted < 1 or (found is not None and 0 < found <= wanted)


# The sizes of streams on a disk that is smaller than their declarations
#
# If the server has room for all declared sizes, each stream gets its declared size. Else the declared size is an aim: a stream
# that is there keeps its size, a new one gets at least `LEAST`, and nine tenths of the room are divided in proportion to the
# differences from the aims. No stream shrinks. At each later start, streams grow towards their aims if there is more room then.
#
# The aim is in the metadata of the stream. So a declaration with this size is not a difference.


class NoRoom(Full):
    """The disk is too small for streams of the least size."""


def fitted(declarations: Declarations, configs: Mapping[str, Mapping[str, Any]], room: DiskRoom) -> Declarations:
    """Return the declarations with sizes that fit the room, and with the declared sizes as aims.

    `configs` has the configurations of the streams that are there, by name. Raises NoRoom.
    """
    aims = {stream.name: int(stream.config["max_bytes"]) for stream in declarations.streams}
    present = {name: int(configs[name].get("max_bytes", -1)) for name in aims.keys() & configs.keys()}
    sizes = _sizes(aims, present, room)
    return attrs.evolve(
        declarations,
        streams=tuple(
            attrs.evolve(stream, config={**stream.config, "max_bytes": sizes[stream.name]}, aim=aims[stream.name])
            for stream in declarations.streams
        ),
    )


def _sizes(aims: Mapping[str, int], present: Mapping[str, int], room: DiskRoom) -> Mapping[str, int]:
    if sum(aims.values()) <= room.size:
        return aims
    least = {name: min(aim, max(present.get(name, 0), LEAST)) for name, aim in aims.items()}
    need = sum(least.values())
    if need > room.size and aims.keys() - present.keys():
        raise NoRoom(
            f"the disk of {room.directory} has room for {room.size // MIB} MiB of streams, and they need at least "
            f"{need // MIB} MiB: make room on this disk, or choose a directory on another one with --data-dir"
        )
    lacking = sum(aims.values()) - need
    share = max(0.0, room.size * _DIVIDED - need) / lacking if lacking else 0.0
    return {name: min(aim, least[name] + int((aim - least[name]) * share)) for name, aim in aims.items()}
