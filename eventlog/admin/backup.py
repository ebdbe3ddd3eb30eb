"""Copies of streams in files, taken from a running server and restored on another, by the server's own snapshots.

A copy is `<stream>.snapshot`, in the server's own form (a tar file compressed by S2), and `<stream>.json`, the description of the
copy with the digest of the file. A restored stream is the same stream: sequences, times, and the incarnation that tables are
bound to. It is closed until all of its records are there (`eventlog.jetstream.api`).

The server that makes a snapshot copies files, also damaged ones, and does not report records that it cannot read. So a copy is
restored on a throw-away server, and every record is read back.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import attrs
import msgspec
from nats.aio.msg import Msg

from eventlog.embedded.nats import MAX_PAYLOAD, EmbeddedServer
from eventlog.errors import Conflict, EventLogError, OutcomeUnknown, Unavailable
from eventlog.jetstream.api import (
    STORAGE_EXCEEDED,
    STREAM_MISSING,
    MessageReader,
    Refused,
    StoredMessage,
    answer_of,
    ask,
    call,
    check_whole,
    closed,
    copy_of,
    opened,
    persist,
)
from eventlog.jetstream.connection import Connection
from eventlog.support.chain import Break, LinkChecker, LinkedCommit, beginning, fingerprints, rolled, text_of
from eventlog.support.files import make_private, sync

_STORE = 1 << 50
"""Bytes that it may store: as many as the disk has."""


@asynccontextmanager
async def throw_away_server(*, max_payload: int = MAX_PAYLOAD, directory: Path | None = None) -> AsyncIterator[Connection]:
    """A connection to a new server for the block. `max_payload` is the most bytes of a message.

    Its files are in `directory`, by default where temporary files are. Raises ServerFailed.
    """
    with tempfile.TemporaryDirectory(prefix=".throw-away-", dir=directory) as scratch:
        async with (
            EmbeddedServer(Path(scratch), max_file_store=_STORE, max_payload=max_payload, durable=False) as server,
            Connection.open(server.url, name="throw-away") as connection,
        ):
            yield connection


CHUNK = 128 * 1024
"""Bytes of one message of a snapshot."""
_TIMEOUT = 10.0
_STANDS_STILL = 10.0
"""Seconds without another record after which the server does not restore a stream any more."""
_PAUSE = 0.25
_LISTENED_WITHIN = 3.0
"""Seconds. In a cluster the answer to a restore can be earlier than the interest in its first part."""


class BackupInvalid(EventLogError):
    """The files are not a whole copy of a stream."""


class StreamThere(Conflict):
    """A stream of that name is on the server already: a copy never replaces one."""


class StreamNotThere(EventLogError):
    """No stream of that name is on the server."""

    status = HTTPStatus.NOT_FOUND


@attrs.frozen(kw_only=True)
class StreamCopy:
    """A copy of a stream: the stream's name, its last sequence, messages, and the file's bytes and sha-256.

    `verified`: it was restored and read when it was made; then `digest` is the running digest of its records.
    """

    stream: str
    last: int
    messages: int
    bytes: int
    sha256: str
    config: Mapping[str, Any]
    state: Mapping[str, Any]
    verified: bool = False
    digest: str | None = None


def copies(directory: Path) -> list[Path]:
    """The descriptions of the copies in a directory, by name."""
    return sorted(directory.glob("*.json"))


async def back_up(connection: Connection, stream: str, directory: Path, *, verify: bool = False) -> StreamCopy:
    """Copy a stream as it is now into `directory`, while it is written to.

    The files are there whole, or not at all, outlast a power cut, and only their owner can read them. With `verify`
    it is checked before (`check_copy`). Raises StreamNotThere,
    FileExistsError if a copy of it is there already, Unavailable, and the errors of `check_copy`.
    """
    names = (f"{stream}.snapshot", f"{stream}.json")
    for name in names:
        if (directory / name).exists():
            raise FileExistsError(f"{directory / name} exists already: each copy needs a separate directory")
    with tempfile.TemporaryDirectory(prefix=f".{stream}-", dir=directory) as unfinished:
        partial, described_in = (Path(unfinished) / name for name in names)
        for file in (partial, described_in):
            make_private(file)
        with partial.open("wb") as output:
            answer, digest = await _receive(connection, stream, output)
            size = output.tell()
        state = answer["state"]
        copy = StreamCopy(
            stream=stream,
            last=state["last_seq"],
            messages=state["messages"],
            bytes=size,
            sha256=digest,
            config=opened(answer["config"]),
            state=state,
        )
        described_in.write_bytes(encoded(copy))
        if verify:
            copy = attrs.evolve(copy, verified=True, digest=await check_copy(described_in))
            described_in.write_bytes(encoded(copy))
        for file in (partial, described_in):
            await asyncio.to_thread(sync, file)
        for file in (partial, described_in):
            file.rename(directory / file.name)
        await asyncio.to_thread(sync, directory)
        return copy


def encoded(copied: StreamCopy) -> bytes:
    """The content of the file that describes a copy."""
    return msgspec.json.format(msgspec.json.encode(copied), indent=2) + b"\n"


async def _receive(connection: Connection, stream: str, output: BinaryIO) -> tuple[dict[str, Any], str]:
    client, digest = connection.client, hashlib.sha256()
    inbox = client.new_inbox()
    chunks: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await client.subscribe(inbox, cb=chunks.put)
    try:
        request = {"deliver_subject": inbox, "chunk_size": CHUNK, "no_consumers": True, "jsck": True}
        try:
            answer = await call(connection, f"STREAM.SNAPSHOT.{stream}", request, timeout=_TIMEOUT)
        except Refused as error:
            if error.number == STREAM_MISSING:
                raise StreamNotThere(f"there is no stream {stream}") from error
            raise
        check_whole(answer)
        while True:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    message = await chunks.get()
            except TimeoutError as error:
                raise Unavailable(f"the server stopped sending the copy of {stream}") from error
            if not message.data:
                status = (message.headers or {}).get("Status", "204")
                if status != "204":
                    raise Unavailable(
                        f"the server gave up the copy of {stream}: {(message.headers or {}).get('Description', status)}"
                    )
                return answer, digest.hexdigest()
            digest.update(message.data)
            output.write(message.data)
            if message.reply:
                await client.publish(message.reply)
    finally:
        await subscription.unsubscribe()


def described(file: Path) -> StreamCopy:
    """Return the description of a copy. The snapshot next to it is read and compared. Raises BackupInvalid."""
    try:
        copied = msgspec.json.decode(file.read_bytes(), type=StreamCopy)
        digest, size = hashlib.sha256(), 0
        for part in _parts(_snapshot(file)):
            digest.update(part)
            size += len(part)
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupInvalid(f"{file} is not a copy of a stream: {error}") from error
    if (size, digest.hexdigest()) != (copied.bytes, copied.sha256):
        raise BackupInvalid(f"{_snapshot(file)} is not what was written: {size} bytes, sha-256 {digest.hexdigest()}")
    return copied


async def check_free(connection: Connection, copied: Iterable[StreamCopy]) -> None:
    """Check that no stream of these copies is on the server. The result of an earlier restore of the same copy may be there.

    A stream without a record may also be there: a service creates one that is missing. Raises StreamThere, Unavailable.
    """
    for copy in copied:
        info = await _info(connection, copy.stream)
        if info is not None and info["state"]["last_seq"] > 0 and copy_of(info["config"]) != copy.sha256:
            raise StreamThere(f"there is a stream {copy.stream} already: a copy never replaces one")


async def restore(
    connection: Connection, file: Path, *, replicas: int = 1, changes: Mapping[str, Any] = MappingProxyType({})
) -> StreamCopy:
    """Restore the stream of a copy, given by its description file. The name of the stream must be free.

    `replicas`: number of servers that hold it. `changes`: members of its configuration that replace the copied ones. It takes no
    writes, and readers wait, until all records are there. A restore that was killed is completed.

    Raises BackupInvalid, StreamThere, Unavailable, OutcomeUnknown.
    """
    copied = described(file)
    await check_free(connection, [copied])
    config = opened({**copied.config, "num_replicas": replicas, **changes})
    await _remove_unused(connection, copied)
    if not await _is_made(connection, copied):
        await _send(connection, file, copied, closed(config, copy=copied.sha256))
    await persist(connection, lambda: call(connection, f"STREAM.UPDATE.{copied.stream}", config), _TIMEOUT)
    return copied


async def _info(connection: Connection, stream: str) -> dict[str, Any] | None:
    """The server's information on a stream; None if there is none."""
    try:
        return await ask(connection, f"STREAM.INFO.{stream}")
    except Refused as error:
        if error.number != STREAM_MISSING:
            raise
        return None


async def _remove_unused(connection: Connection, copied: StreamCopy) -> None:
    """Remove a stream without a record that is in the place of a copy. It is closed before, so that it gets no record.

    Raises StreamThere, Unavailable.
    """
    info = await _info(connection, copied.stream)
    if info is None or info["state"]["last_seq"] > 0 or copy_of(info["config"]) is not None:
        return
    await call(connection, f"STREAM.UPDATE.{copied.stream}", closed(info["config"]))
    try:
        await check_free(connection, [copied])
    except StreamThere:
        await call(connection, f"STREAM.UPDATE.{copied.stream}", opened(info["config"]))
        raise
    await call(connection, f"STREAM.DELETE.{copied.stream}")


async def _is_made(connection: Connection, copied: StreamCopy) -> bool:
    """Whether the stream of a copy is whole on the server, which may restore it at this moment.

    A part of it that grows no more is removed: the copy has its records.
    """
    still_since, before = time.monotonic(), -1
    while (info := await _info(connection, copied.stream)) is not None:
        state = info["state"]
        if (state["last_seq"], state["messages"]) == (copied.last, copied.messages):
            return True
        if state["messages"] != before:
            still_since, before = time.monotonic(), state["messages"]
        if time.monotonic() - still_since > _STANDS_STILL:
            await call(connection, f"STREAM.DELETE.{copied.stream}")
        await asyncio.sleep(_PAUSE)
    return False


async def _send(connection: Connection, file: Path, copied: StreamCopy, config: Mapping[str, Any]) -> None:
    """Send the snapshot of a copy, and wait until the server has made the stream. Raises Unavailable, OutcomeUnknown."""
    request = {"config": config, "state": copied.state}
    try:
        answer = await call(connection, f"STREAM.RESTORE.{copied.stream}", request, timeout=_TIMEOUT)
    except Refused as error:
        if error.number == STORAGE_EXCEEDED:
            text = (
                f"{copied.stream} reserves {config['max_bytes']} bytes, more than the server has left: raise its max_file_store"
            )
            raise Unavailable(text) from error
        raise
    target = answer["deliver_subject"]
    patience = _LISTENED_WITHIN
    for part in _parts(_snapshot(file)):
        send = partial(connection.request, target, part, timeout=_TIMEOUT)
        reply = await persist(connection, send, patience, may_be_repeated=False)
        patience = 0.0  # once a server has listened, the restore is over if it no longer does
        if reply.data:
            answer_of(f"to restore {copied.stream}", reply.data)
    try:
        reply = await connection.request(target, b"", timeout=_TIMEOUT)
    except OutcomeUnknown:  # a long stream takes longer: the server writes some hundred records a second
        if not await _is_made(connection, copied):
            raise
        return
    restored = answer_of(f"to restore {copied.stream}", reply.data)["state"]
    if (restored["last_seq"], restored["messages"]) != (copied.last, copied.messages):
        raise OutcomeUnknown(f"{copied.stream} ends at sequence {restored['last_seq']}, its copy at {copied.last}")


def _snapshot(file: Path) -> Path:
    return file.with_suffix(".snapshot")


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while part := content.read(CHUNK):
            yield part


# The check of a copy


_TOGETHER = 512
_is_commit = re.compile(rb'\{"id":"[^"]*","at":"').match
"""Matches the beginning of a commit, not of a key of a person: a stream whose first record is a commit is an event log."""
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
        prints = fingerprints(several)
        self._digest = rolled(self._digest, prints)
        for stored in several:
            if len(self._missing) <= _MOST:
                self._missing += range(self._last + 1, min(stored.sequence, self._last + _MOST + 2))
            self._last, self._count = stored.sequence, self._count + 1
        if self._is_log is None:
            self._is_log = _is_commit(several[0].data) is not None
        if self._is_log:
            looked = self._links.look(several, prints)
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
