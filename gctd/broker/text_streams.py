"""Text that is followed while it is written: chunks of bytes with their offsets, on one subject of a stream for each text.

It is not a log of events: chunks expire by the stream's limits, one may come twice, and a missing one shows in the offsets.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import attrs
import structlog

from eventlog import Unavailable
from eventlog.jetstream import Connection, MessageReader, StoredMessage, answer_of

log = structlog.get_logger(__name__)

_AT_ONCE = 100
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@attrs.frozen
class TextChunk:
    """Bytes of a text, from byte `offset` of it on; `sequence` in the stream."""

    sequence: int
    offset: int
    data: bytes


class TextStreams:
    """The texts of one stream, by name: on the subjects `<prefix>.<name>`."""

    def __init__(self, connection: Connection, stream: str, *, prefix: str) -> None:
        self._connection = connection
        self._reader = MessageReader(connection, stream)
        self._stream = stream
        self._prefix = prefix

    async def append(self, name: str, offset: int, data: bytes) -> None:
        """Store a chunk. Raises Unavailable (OutcomeUnknown: it may be stored; doing it again is harmless), Refused."""
        subject = self._subject(name)
        reply = await self._connection.request(subject, b"%d\n%b" % (offset, data))
        answer_of(f"to store in {self._stream}", reply.data)

    async def read(self, name: str, *, after: int = 0) -> Sequence[TextChunk]:
        """The chunks above a sequence of the stream, as far as they are still there. Raises Unavailable."""
        chunks: list[TextChunk] = []
        while True:
            request = {"batch": _AT_ONCE, "next_by_subj": self._subject(name), "seq": after + 1}
            found = await self._reader.several(request)
            chunks += map(_chunk, found)
            if len(found) < _AT_ONCE:
                return chunks
            after = found[-1].sequence

    @asynccontextmanager
    async def heard(self, name: str, wake: Callable[[], None]) -> AsyncIterator[None]:
        """Call `wake` when a chunk comes, until the end of the block.

        After a fault of the connection it may be silent, so a caller also has to look by itself now and then.
        """
        client = self._connection.client
        try:
            subscription = await client.tap(self._subject(name), lambda *_: wake())
        except Exception as error:  # noqa: BLE001 - whatever nats-py raises while it is not connected
            log.debug("a text is not heard", stream=self._stream, reason=repr(error))
            yield
            return
        try:
            yield
        finally:
            await client.untap(subscription)

    def _subject(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a text: only A-Z a-z 0-9 _ - and single dots between")
        return f"{self._prefix}.{name}"


def _chunk(stored: StoredMessage) -> TextChunk:
    offset, _, data = stored.data.partition(b"\n")
    if not offset.isdigit():
        raise Unavailable(f"sequence {stored.sequence} is not a chunk of a text")
    return TextChunk(stored.sequence, int(offset), data)
