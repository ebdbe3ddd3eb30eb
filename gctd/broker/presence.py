"""Presence: entries of a key-value bucket that expire unless they are written again (ADR-8, with a TTL on the bucket)."""

from __future__ import annotations

import re
from datetime import datetime

import attrs

from eventlog.jetstream import Connection, MessageReader, answer_of, call

_TIMEOUT = 2.0
_ID = re.compile(r"[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*")


@attrs.frozen
class PresenceEntry:
    """The last value of a member, and the time at which the broker received it."""

    payload: bytes
    at: datetime


class Presence:
    """The entries of one bucket, by id: at most 1,024 of them (ADR-31), which are workers, hosts and the like.

    The time that an entry lives is the bucket's: announce a few times within it.
    """

    def __init__(self, connection: Connection, bucket: str) -> None:
        self._connection = connection
        self._stream = f"KV_{bucket}"
        self._reader = MessageReader(connection, self._stream)
        self._prefix = f"$KV.{bucket}."

    async def announce(self, id_: str, payload: bytes) -> None:
        """Be present, with a value for others, until the bucket's time has passed without a heartbeat. Raises Unavailable."""
        subject = self._subject(id_)
        reply = await self._connection.request(subject, payload, timeout=_TIMEOUT)
        answer_of(f"to store {subject}", reply.data)

    async def leave(self, id_: str) -> None:
        """Be present no more. Raises Unavailable."""
        await call(self._connection, f"STREAM.PURGE.{self._stream}", {"filter": self._subject(id_)}, timeout=_TIMEOUT)

    async def present(self) -> dict[str, bytes]:
        """The last values of present members, by id. Raises Unavailable."""
        return {id_: announced.payload for id_, announced in (await self.heard()).items()}

    async def heard(self) -> dict[str, PresenceEntry]:
        """The same, with when it was: one request, however many there are. Raises Unavailable."""
        return {
            stored.subject.removeprefix(self._prefix): PresenceEntry(stored.data, stored.at)
            for stored in await self._reader.several({"multi_last": [f"{self._prefix}>"]})
            if b"\r\nKV-Operation:" not in (stored.headers or b"")  # another client's mark of a deletion
        }

    def _subject(self, id_: str) -> str:
        if not _ID.fullmatch(id_):
            raise ValueError(f"{id_!r} cannot name who is present: only A-Z a-z 0-9 _ = - and single dots between")
        return self._prefix + id_
