"""Who is present: entries of a key-value bucket that lapse unless they are written again (ADR-8, with a TTL on the bucket)."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from eventlog.jetstream.api import NO_MESSAGE, Refused, call
from eventlog.jetstream.connection import Connection

_PUT_TIMEOUT = 2.0


class Presence:
    """The entries of one bucket, by id (a single subject token)."""

    def __init__(self, connection: Connection, bucket: str) -> None:
        self._connection = connection
        self._stream = f"KV_{bucket}"
        self._prefix = f"$KV.{bucket}."

    async def announce(self, id_: str, payload: bytes) -> None:
        """Be present, with what others are told, until the bucket's time has passed without a word. Raises Unavailable."""
        await self._connection.request(self._prefix + id_, payload, timeout=_PUT_TIMEOUT)

    async def leave(self, id_: str) -> None:
        """Be present no more. Raises Unavailable."""
        await call(self._connection, f"STREAM.PURGE.{self._stream}", {"filter": self._prefix + id_})

    async def present(self) -> dict[str, bytes]:
        """What those who are present said last, by id. Raises Unavailable."""
        info = await call(self._connection, f"STREAM.INFO.{self._stream}", {"subjects_filter": f"{self._prefix}>"})
        subjects = list(info["state"].get("subjects") or ())
        found = await asyncio.gather(*(self._last(subject) for subject in subjects))
        pairs = zip(subjects, found, strict=True)
        return {subject.removeprefix(self._prefix): payload for subject, payload in pairs if payload is not None}

    async def _last(self, subject: str) -> bytes | None:
        try:
            answer: dict[str, Any] = await call(self._connection, f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": subject})
        except Refused as error:
            if error.number == NO_MESSAGE:  # it lapsed between the two requests
                return None
            raise
        return base64.b64decode(answer["message"].get("data", ""))
