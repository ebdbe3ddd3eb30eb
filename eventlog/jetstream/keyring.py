"""The keys of persons in a separate stream, one message each: `eventlog.privacy.Keyring` on JetStream.

The stream allows what no event stream does: a message in it can be deleted, and the server then writes over its bytes. Which
person a key belongs to is in its subject, as a digest (HMAC-SHA-256) under the stream's own random id.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from eventlog.errors import Unavailable
from eventlog.jetstream.api import (
    NO_MESSAGE,
    STREAM_MISSING,
    WRONG_LAST_SEQUENCE,
    MessageReader,
    Refused,
    StoredMessage,
    answer_of,
    ask,
    call,
    incarnation_of,
    persist,
)
from eventlog.jetstream.connection import Connection
from eventlog.privacy import Key

PATIENCE = 1.5
"""Seconds for which a broker that is away is waited for."""
_AT_ONCE = 256
_DIGEST = 32
_DELETE_FAILED = 10057


class _KeyEntry(msgspec.Struct):
    id: str
    secret: bytes


class JetStreamKeyring:
    """The keys in the stream `stream`, whose subjects are `<prefix>.*`."""

    def __init__(self, connection: Connection, stream: str, prefix: str) -> None:
        self._connection = connection
        self._stream = stream
        self._prefix = prefix
        self._reader = MessageReader(connection, stream)

    async def key_of(self, person: str) -> Key:
        """See `eventlog.privacy.Keyring.key_of`."""

        async def attempt() -> Key:
            if (info := await self._info()) is None:
                raise Unavailable(f"the stream {self._stream} with the keys of persons is missing: restore its copy")
            subject = self._subject(person, info)
            if (found := await self._reader.leader({"last_by_subj": subject})) is not None:
                return _key(found)
            new = Key.new(0)
            payload = msgspec.json.encode(_KeyEntry(new.id, new.secret))
            guard = b"Nats-Expected-Last-Subject-Sequence: 0\r\n"
            reply = await self._connection.request(subject, payload, headers=guard)
            try:
                stored = answer_of(f"to store a key in {self._stream}", reply.data)
            except Refused as error:
                if error.number != WRONG_LAST_SEQUENCE:
                    raise
                raise Unavailable("another process made the person's key at the same moment") from error
            return attrs.evolve(new, place=stored["seq"])

        return await persist(self._connection, attempt, PATIENCE)

    async def find(self, person: str) -> Key | None:
        """See `eventlog.privacy.Keyring.find`."""
        if (info := await self._info()) is None:
            return None
        request = {"last_by_subj": self._subject(person, info)}
        found = await persist(self._connection, lambda: self._reader.certainly(request), PATIENCE)
        return None if found is None else _key(found)

    async def after(self, place: int) -> Sequence[Key]:
        """See `eventlog.privacy.Keyring.after`."""
        keys: list[Key] = []
        if await self._info() is None:
            return keys

        def request() -> dict[str, object]:
            return {"next_by_subj": f"{self._prefix}.*", "seq": (keys[-1].place if keys else place) + 1}

        async def attempt() -> None:
            while True:
                some = await self._reader.several({"batch": _AT_ONCE, **request()})
                keys.extend(map(_key, some))
                if not some:  # a replica may be behind: the leader knows
                    last = await self._reader.certainly(request())
                    if last is None:
                        return
                    keys.append(_key(last))

        await persist(self._connection, attempt, PATIENCE)
        return keys

    async def identity(self) -> str:
        """See `eventlog.privacy.Keyring.identity`."""
        info = await self._info()
        return "" if info is None else f"{incarnation_of(info)} {info['created']}"

    async def destroy(self, key: Key) -> None:
        """See `eventlog.privacy.Keyring.destroy`."""

        async def attempt() -> None:
            try:
                await call(self._connection, f"STREAM.MSG.DELETE.{self._stream}", {"seq": key.place, "no_erase": False})
            except Refused as error:
                if error.number not in {NO_MESSAGE, _DELETE_FAILED}:
                    raise
                if await self._reader.certainly({"seq": key.place}) is not None:
                    raise

        await persist(self._connection, attempt, PATIENCE)

    def _subject(self, person: str, info: Mapping[str, Any]) -> str:
        """The subject of a person's key in the stream as it is now: another one can have replaced it at any time."""
        digest = hmac.new(incarnation_of(info).encode(), person.encode(), hashlib.sha256).hexdigest()
        return f"{self._prefix}.{digest[:_DIGEST]}"

    async def _info(self) -> dict[str, Any] | None:
        try:
            return await persist(self._connection, lambda: ask(self._connection, f"STREAM.INFO.{self._stream}"), PATIENCE)
        except Refused as error:
            if error.number != STREAM_MISSING:
                raise
            return None


def _key(stored: StoredMessage) -> Key:
    entry = msgspec.json.decode(stored.data, type=_KeyEntry)
    return Key(entry.id, entry.secret, stored.sequence)
