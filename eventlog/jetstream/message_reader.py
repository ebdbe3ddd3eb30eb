"""Single reads of stored messages: from the leader, or from whichever replica answers first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from eventlog.commit import Commit, CommitDecoder
from eventlog.errors import Unavailable
from eventlog.jetstream.api import NO_MESSAGE, TIMEOUT, Refused, ask, check_whole
from eventlog.jetstream.transport.connection import REQUEST_TIMEOUT, Connection
from eventlog.jetstream.transport.reply_router import NatsReply

_NOT_FOUND, _END_OF_BATCH = "404", "204"


class BrokerError(msgspec.Struct):
    """Why the broker refused something (nats-server, `server/errors.json`)."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    def __str__(self) -> str:
        return f"{self.description} ({self.err_code})"


class StoredMessage(msgspec.Struct, rename={"sequence": "seq", "headers": "hdrs"}):
    """A message of the stream; `headers` is its header block, `time` the text of the server's time when it was stored."""

    subject: str
    sequence: int
    data: bytes = b""
    headers: bytes | None = None
    time: str = ""

    def commit(self, registry: CommitDecoder) -> Commit:
        """The commit that it is, to be decoded by a registry."""
        return Commit(self.sequence, self.subject, self.data, registry, self.headers)

    @property
    def at(self) -> datetime:
        """The server's time when it was stored: aware, UTC."""
        return datetime.fromisoformat(self.time)


class _Answer(msgspec.Struct):
    message: StoredMessage | None = None
    error: BrokerError | None = None


class MessageReader:
    """Reads of one stream, each tried once. All raise Unavailable (OutcomeUnknown if no answer came)."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._decoder = msgspec.json.Decoder(_Answer)

    async def leader(self, request: Mapping[str, Any], timeout: float = REQUEST_TIMEOUT) -> StoredMessage | None:  # noqa: ASYNC109 - passed on
        """A message as the leader has it: nothing newer is acknowledged. None if there is none."""
        subject = f"$JS.API.STREAM.MSG.GET.{self._stream}"
        reply = await self._connection.ask(subject, msgspec.json.encode(request), timeout=timeout)
        try:
            answer = self._decoder.decode(reply.data)
        except msgspec.DecodeError as error:
            raise Unavailable(f"the stream {self._stream} cannot be read: {error}") from error
        if answer.message is None and (answer.error is None or answer.error.err_code != NO_MESSAGE):
            raise Unavailable(f"the stream {self._stream} cannot be read: {answer.error}")
        return answer.message

    async def info(self, body: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT) -> dict[str, Any]:  # noqa: ASYNC109 - passed on
        """The leader's information on the stream (STREAM.INFO). Raises StreamClosed while its records are being restored."""
        try:
            info = await ask(self._connection, f"STREAM.INFO.{self._stream}", body, timeout=timeout)
        except Refused as error:
            raise Unavailable(f"no information on the stream {self._stream}: {error.description}") from error
        check_whole(info)
        return info

    async def certainly(self, request: Mapping[str, Any]) -> StoredMessage | None:
        """As `leader`, but None is certain: the leader is asked twice, and the stream is not being restored in between."""
        if (found := await self.leader(request)) is None:
            await self.info()
            found = await self.leader(request)
        return found

    async def last(self, subject: str) -> StoredMessage | None:
        """A subject's last message as some replica has it (direct get, ADR-31): it may be a moment old. None: it has none."""
        return self._one(await self._connection.ask(f"$JS.API.DIRECT.GET.{self._stream}.{subject}"))

    async def direct(self, request: Mapping[str, Any]) -> StoredMessage | None:
        """A message as some replica has it. None if it has none: it may be behind."""
        subject = f"$JS.API.DIRECT.GET.{self._stream}"
        return self._one(await self._connection.ask(subject, msgspec.json.encode(request)))

    async def several(self, request: Mapping[str, Any]) -> Sequence[StoredMessage]:
        """The messages that some replica has, for a request for a batch; none if it has none: it may be behind."""
        found: list[StoredMessage] = []
        subject = f"$JS.API.DIRECT.GET.{self._stream}"
        async for reply in self._connection.request_many(subject, msgspec.json.encode(request)):
            if reply.status == _END_OF_BATCH or (stored := self._one(reply)) is None:
                break
            found.append(stored)
        return found

    def _one(self, reply: NatsReply) -> StoredMessage | None:
        if reply.status is None:
            subject, sequence = reply.header(b"Nats-Subject"), int(reply.header(b"Nats-Sequence"))
            return StoredMessage(subject, sequence, reply.data, reply.head, reply.header(b"Nats-Time-Stamp"))
        if reply.status == _NOT_FOUND:
            return None
        raise Unavailable(f"the stream {self._stream} cannot be read: {reply.description}")
