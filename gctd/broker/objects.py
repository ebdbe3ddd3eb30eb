"""Objects in an object bucket as ADR-20 lays them out: chunks on one subject, a description on another, links.

nats-py's own object store waits without end for a chunk that is missing, leaves a subscription and a consumer behind when it is
cancelled, and does not report whether an upload that failed was stored. It can read the objects of this module, and vice versa.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import uuid4

import attrs
import msgspec
import structlog

from eventlog import EventLogError, Unavailable
from eventlog.jetstream import (
    WRONG_LAST_SEQUENCE,
    Connection,
    MessageReader,
    Refused,
    StoredMessage,
    answer_of,
    ask,
    call,
    persist,
    subjects_of,
)

log = structlog.get_logger(__name__)

CHUNK = 512 * 1024
LONGEST_NAME = 2048
"""Bytes of a name: it is part of a subject, and the server ends a connection that sends a line of more than 4,096."""

READ_DEADLINE = 2.0
WRITE_DEADLINE = 15.0
"""Seconds that a broker which is away is waited for, at each step: a restart or an election."""

_ROLLUP = b"Nats-Rollup: sub\r\n"
_TOGETHER = 256
_TRIES = 8


class Link(msgspec.Struct, frozen=True):
    """The target of a name."""

    bucket: str
    name: str | None = None


class ObjectOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of a description."""

    link: Link | None = None
    max_chunk_size: int = 0


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object's description: `size` in bytes, `digest` as ADR-20 writes it (`SHA-256=` and URL-safe base64)."""

    name: str
    bucket: str
    nuid: str
    size: int = 0
    chunks: int = 0
    digest: str = ""
    deleted: bool = False
    options: ObjectOptions | None = None

    @property
    def target(self) -> str | None:
        """The name of the object in the same bucket that this is a link to."""
        link = self.options.link if self.options else None
        return link.name if link and link.bucket == self.bucket else None


@attrs.frozen(kw_only=True)
class StoredObject:
    """An object, a link, or the mark of a removed one. `sequence` and `at`: of its description in the stream."""

    description: Description
    sequence: int
    at: datetime


class ObjectBucket:
    """The objects of one bucket. All errors are the event log's."""

    def __init__(self, connection: Connection, bucket: str) -> None:
        self._connection = connection
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"
        self._reader = MessageReader(connection, self._stream)

    async def describe(self, name: str) -> Description | None:
        """The description of an object or link, None if there is none. Raises Unavailable."""
        found, _ = await self._description(name)
        return found

    async def put(self, name: str, data: bytes) -> None:
        """Store an object whose name identifies its content. One that is there gets the present time.

        So a removal of old objects, which may run at the same moment, spares it. Raises Unavailable.
        """
        first: int | None = None
        for _ in range(_TRIES):
            found, sequence = await self._description(name)
            if found is not None and found.size == len(data) and await self._complete(found):
                if first is not None and sequence > first:  # stored by another program since this call began
                    return
                if await self._put_description(found, sequence) is not None:
                    return
            elif await self._upload(name, data, sequence):
                if found is not None:
                    await self._forget(found.nuid)
                return
            first = sequence if first is None else first
        raise Unavailable(f"the object {name} in {self._bucket} changed {_TRIES} times during the upload")

    async def _upload(self, name: str, data: bytes, expected: int) -> bool:
        """Store chunks and description. If the description is not the one at `expected` any more: False, without a trace."""
        nuid, description = uuid4().hex, None
        try:
            chunks = list(_split(data, min(CHUNK, self._connection.max_payload // 2)))
            for number, chunk in enumerate(chunks):
                await self._publish(self._chunks(nuid), chunk, b"Nats-Msg-Id: %b.%d\r\n" % (nuid.encode(), number))
            digest = f"SHA-256={base64.urlsafe_b64encode(sha256(data).digest()).decode()}"
            options = ObjectOptions(max_chunk_size=CHUNK)
            description = Description(name, self._bucket, nuid, len(data), len(chunks), digest, options=options)
            stored = await self._put_description(description, expected)
        except BaseException:
            await self._forget_failed(nuid, description)
            raise
        if stored is None:
            await self._forget(nuid)
        return stored is not None

    async def _forget_failed(self, nuid: str, description: Description | None) -> None:
        """Remove the chunks of an upload that failed, unless its description is stored all the same: then the object is whole."""
        with contextlib.suppress(EventLogError):  # chunks without a description cost room, no more
            if description is None or (await self._description(description.name))[0] != description:
                await self._forget(nuid)

    async def get(self, description: Description) -> bytes | None:
        """An object's bytes, None where chunks of it are missing. Raises Unavailable."""
        parts: list[bytes] = []
        sequence = 0
        for _ in range(description.chunks):
            found = await self._message({"next_by_subj": self._chunks(description.nuid), "seq": sequence + 1})
            if found is None:
                return None
            sequence = found.sequence
            parts.append(found.data)
        return b"".join(parts)

    async def link(self, name: str, target: str) -> None:
        """Link a name to an object of this bucket, in place of an earlier link. Raises Unavailable."""
        options = ObjectOptions(link=Link(self._bucket, target))
        description = Description(name, self._bucket, uuid4().hex, options=options)
        await self._publish(self._meta(name), msgspec.json.encode(description), _ROLLUP)

    async def all(self) -> AsyncIterator[Sequence[StoredObject]]:
        """All objects and links, and the marks of interrupted removals, in lists. Raises Unavailable."""
        after = 0
        while True:
            request = {"batch": _TOGETHER, "seq": after + 1, "next_by_subj": f"$O.{self._bucket}.M.>"}
            found = await persist(self._connection, partial(self._reader.several, request), READ_DEADLINE)
            if not found:
                return
            after = found[-1].sequence
            yield [_stored(one) for one in found]

    async def remove(self, known: StoredObject) -> bool:
        """Remove an object or a link, unless it was stored again since it was read: then the answer is False.

        The description is first marked as deleted. If the removal is interrupted after that, `all` has the marked one, and
        another call with it does the rest. Raises Unavailable.
        """
        sequence = known.sequence
        if not known.description.deleted:
            marked = await self._put_description(msgspec.structs.replace(known.description, deleted=True), sequence)
            if marked is None:
                return False
            sequence = marked
        purge = f"STREAM.PURGE.{self._stream}"
        filter_ = {"filter": self._chunks(known.description.nuid)}
        await persist(self._connection, lambda: call(self._connection, purge, filter_), WRITE_DEADLINE)
        with contextlib.suppress(Refused):  # the object was stored again: the mark is gone
            request, mark = f"STREAM.MSG.DELETE.{self._stream}", {"seq": sequence, "no_erase": True}
            await persist(self._connection, lambda: call(self._connection, request, mark), WRITE_DEADLINE)
        return True

    async def remove_stray_chunks(self, known: Collection[str], *, before: datetime) -> None:
        """Remove chunks from before that time whose nuid is not among these: of programs that ended while they stored an object.

        Raises Unavailable.
        """
        for subject in await subjects_of(self._connection, self._stream, self._chunks("*")):
            if (nuid := subject.rpartition(".")[2]) in known:
                continue
            newest = await self._message({"last_by_subj": subject})
            if newest is not None and newest.at < before:
                await self._forget(nuid)

    async def _put_description(self, description: Description, expected: int) -> int | None:
        """Store it in the place of the one at sequence `expected`; its sequence, None if another program was first."""
        guard = b"Nats-Expected-Last-Subject-Sequence: %d\r\n" % expected
        try:
            return await self._publish(self._meta(description.name), msgspec.json.encode(description), _ROLLUP + guard)
        except Refused as error:
            if error.number != WRONG_LAST_SEQUENCE:
                raise
        found = await self._message({"last_by_subj": self._meta(description.name)})
        # The same one at a later sequence: a first try was stored, and its answer was lost.
        return found.sequence if found is not None and found.sequence > expected and _decode(found.data) == description else None

    async def _description(self, name: str) -> tuple[Description | None, int]:
        """The description, and the sequence of the stored message in its place (0: none); a deleted object has none."""
        found = await self._message({"last_by_subj": self._meta(name)})
        if found is None:
            return None, 0
        description = _decode(found.data)
        return None if description.deleted else description, found.sequence

    async def _complete(self, description: Description) -> bool:
        subject = self._chunks(description.nuid)
        request = f"STREAM.INFO.{self._stream}"
        info = await persist(
            self._connection, lambda: ask(self._connection, request, {"subjects_filter": subject}), READ_DEADLINE
        )
        stored: int = (info["state"].get("subjects") or {}).get(subject, 0)
        return stored == description.chunks

    async def _message(self, request: dict[str, str | int]) -> StoredMessage | None:
        """One message, read from the leader: it includes messages that were just stored."""
        return await persist(self._connection, partial(self._reader.leader, request), READ_DEADLINE)

    async def _publish(self, subject: str, payload: bytes, headers: bytes) -> int:
        """Store a message; its sequence."""

        async def attempt() -> int:
            reply = await self._connection.request(subject, payload, headers=headers)
            sequence: int = answer_of(f"to store in {self._bucket}", reply.data)["seq"]
            return sequence

        return await _to_the_end(persist(self._connection, attempt, WRITE_DEADLINE))

    async def _forget(self, nuid: str) -> None:
        """Remove chunks that no description names."""
        with contextlib.suppress(EventLogError):  # they cost room, no more
            await call(self._connection, f"STREAM.PURGE.{self._stream}", {"filter": self._chunks(nuid)})

    def _chunks(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _meta(self, name: str) -> str:
        if not 0 < len(name.encode()) <= LONGEST_NAME:
            raise ValueError(f"the name of an object has 1 to {LONGEST_NAME} bytes")
        return f"$O.{self._bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


async def _to_the_end(storing: Coroutine[Any, Any, int]) -> int:
    """The result of storing. A cancellation waits for its end, because a part that is stored after the removal would stay."""
    task = asyncio.ensure_future(storing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=READ_DEADLINE)
        task.cancel()
        raise


def _decode(data: bytes) -> Description:
    return msgspec.json.decode(data, type=Description)


def _stored(message: StoredMessage) -> StoredObject:
    return StoredObject(description=_decode(message.data), sequence=message.sequence, at=message.at)


def _split(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))
