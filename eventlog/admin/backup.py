"""Copies of streams in files, taken from a running server and restored on another, by the server's own snapshots.

A copy is `<stream>.snapshot`, in the server's own form (a tar file compressed by S2), and `<stream>.json`: what was copied,
with the digest of the file. A restored stream is the same stream: sequences, times, and the incarnation that tables are bound to.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import msgspec
from nats.aio.msg import Msg

from eventlog.errors import Conflict, EventLogError, OutcomeUnknown, Unavailable
from eventlog.jetstream.api import STORAGE_EXCEEDED, STREAM_MISSING, Refused, answer_of, ask, call
from eventlog.jetstream.transport.connection import Connection

CHUNK = 128 * 1024
"""Bytes of one message of a snapshot."""
_TIMEOUT = 10.0
_RESTORED_WITHIN = 120.0


class BackupInvalid(EventLogError):
    """The files are not a whole copy of a stream."""


class StreamThere(Conflict):
    """A stream of that name is on the server already: a copy never replaces one."""


class StreamNotThere(EventLogError):
    """No stream of that name is on the server."""


@attrs.frozen(kw_only=True)
class Copied:
    """What a copy of a stream has: the stream's name, its last sequence, messages, and the file's bytes and sha-256."""

    stream: str
    last: int
    messages: int
    bytes: int
    sha256: str
    config: Mapping[str, Any]
    state: Mapping[str, Any]


def copies(directory: Path) -> list[Path]:
    """The descriptions of the copies in a directory, by name."""
    return sorted(directory.glob("*.json"))


async def back_up(connection: Connection, stream: str, directory: Path) -> Copied:
    """Copy a stream as it is now into `directory`, while it is written to. The files are there whole, or not at all.

    Raises StreamNotThere, FileExistsError where a copy of it is there already, Unavailable.
    """
    target, described = directory / f"{stream}.snapshot", directory / f"{stream}.json"
    for file in (target, described):
        if file.exists():
            raise FileExistsError(f"{file} is there already: each copy has a directory of its own")
    partial = directory / f"{stream}.partial"
    try:
        with partial.open("xb") as output:
            answer, digest = await _receive(connection, stream, output)
            output.flush()
            os.fsync(output.fileno())
            size = output.tell()
        state = answer["state"]
        copied = Copied(
            stream=stream,
            last=state["last_seq"],
            messages=state["messages"],
            bytes=size,
            sha256=digest,
            config=answer["config"],
            state=state,
        )
        partial.rename(target)
        described.write_bytes(msgspec.json.format(msgspec.json.encode(copied), indent=2) + b"\n")
        return copied
    finally:
        partial.unlink(missing_ok=True)


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
        while True:
            try:
                message = await asyncio.wait_for(chunks.get(), _TIMEOUT)
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


def described(file: Path) -> Copied:
    """What a copy has, by its description; the snapshot beside it is read and compared. Raises BackupInvalid."""
    try:
        copied = msgspec.json.decode(file.read_bytes(), type=Copied)
        digest, size = hashlib.sha256(), 0
        for part in _parts(_snapshot(file)):
            digest.update(part)
            size += len(part)
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupInvalid(f"{file} is not a copy of a stream: {error}") from error
    if (size, digest.hexdigest()) != (copied.bytes, copied.sha256):
        raise BackupInvalid(f"{_snapshot(file)} is not what was written: {size} bytes, sha-256 {digest.hexdigest()}")
    return copied


async def check_free(connection: Connection, streams: Iterable[str]) -> None:
    """See that no stream of these names is on the server. Raises StreamThere, Unavailable."""
    for stream in streams:
        try:
            await ask(connection, f"STREAM.INFO.{stream}")
        except Refused as error:
            if error.number != STREAM_MISSING:
                raise
        else:
            raise StreamThere(f"there is a stream {stream} already: a copy never replaces one")


async def restore(connection: Connection, file: Path, *, replicas: int = 1) -> Copied:
    """Make the stream of a copy (by its description) again, held by so many servers; its name must be free.

    Raises BackupInvalid, StreamThere, Unavailable, OutcomeUnknown.
    """
    copied = described(file)
    await check_free(connection, [copied.stream])
    config = {**copied.config, "num_replicas": replicas}
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
    for part in _parts(_snapshot(file)):
        reply = await connection.request(target, part, timeout=_TIMEOUT)
        if reply.data:
            answer_of(f"to restore {copied.stream}", reply.data)
    reply = await connection.request(target, b"", timeout=_RESTORED_WITHIN)
    restored = answer_of(f"to restore {copied.stream}", reply.data)["state"]
    if (restored["last_seq"], restored["messages"]) != (copied.last, copied.messages):
        raise OutcomeUnknown(f"{copied.stream} ends at sequence {restored['last_seq']}, its copy at {copied.last}")
    return copied


def _snapshot(file: Path) -> Path:
    return file.with_suffix(".snapshot")


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while part := content.read(CHUNK):
            yield part


__all__ = ["BackupInvalid", "Copied", "StreamNotThere", "StreamThere", "back_up", "check_free", "copies", "described", "restore"]
