"""Requests to the API of JetStream, and reads of single messages from the leader or from any replica."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from eventlog.commit import Commit, Registry
from eventlog.errors import EventLogError, OutcomeUnknown, Unavailable
from eventlog.jetstream.connection import REQUEST_TIMEOUT, Connection, NatsReply
from eventlog.support.timers import Backoff

T = TypeVar("T")

PREFIX = "$JS.API."
TIMEOUT = 5.0

PLAIN_ACK_TOKENS = 9
"""Parts of a reply subject without domain and account: `$JS.ACK.stream.consumer.times.sequence.delivery.time.pending`."""

NO_MESSAGE = 10037
NO_PEERS = 10005
CONSUMER_MISSING = 10014
CONSUMER_EXISTS = 10148
NAME_IN_USE = 10058
WRONG_LAST_SEQUENCE = 10071
_NO_ROOM = frozenset({10023, 10077})
STREAM_MISSING = 10059
STORAGE_EXCEEDED = 10047


class Refused(EventLogError):
    """JetStream refused a request: `number` is its own error number (`err_code` in the server's errors.json).

    `passing` if it is the server that cannot, not the request that is wrong: it may be taken later.
    """

    def __init__(self, request: str, code: int, number: int, description: str) -> None:
        super().__init__(f"JetStream refuses {request}: {description} ({number})")
        self.number = number
        self.description = description
        self.passing = code >= HTTPStatus.INTERNAL_SERVER_ERROR or number == NO_PEERS


class Full(Unavailable):
    """A stream, or the server, has no room: somebody has to make some, it does not pass."""


async def call(
    connection: Connection,
    request: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - ends with a special error
) -> dict[str, Any]:
    """The answer to a request, `STREAM.INFO.BANK` say.

    Raises Refused, Unavailable (no connection, no leader, no JetStream) and OutcomeUnknown, which is one (no answer).
    """
    reply = await connection.request(PREFIX + request, _encoded(body), timeout=timeout)
    return answer_of(request, reply.data)


async def ask(
    connection: Connection,
    request: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - as in `call`
) -> dict[str, Any]:
    """As `call`, for a request that may be repeated: see `Connection.ask`."""
    reply = await connection.ask(PREFIX + request, _encoded(body), timeout=timeout)
    return answer_of(request, reply.data)


async def subjects_of(connection: Connection, stream: str, pattern: str) -> dict[str, int]:
    """The subjects that a pattern matches, with the number of their messages, as the leader counts them: page by page.

    While subjects are removed from the stream, some may be left out. Raises Refused, Unavailable.
    """
    counts: dict[str, int] = {}
    while True:
        info = await ask(connection, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": len(counts)})
        page = info["state"].get("subjects") or {}
        counts |= page
        if not page or len(counts) >= info.get("total", 0):
            return counts


def _encoded(body: Mapping[str, Any] | None) -> bytes:
    return msgspec.json.encode(body) if body else b""


def answer_of(request: str, data: bytes) -> dict[str, Any]:
    """The content of the reply to a request. Raises Refused, Unavailable, Full."""
    answer: dict[str, Any] = msgspec.json.decode(data)
    if (refusal := answer.get("error")) is None:
        return answer
    if refusal.get("err_code") in _NO_ROOM:
        raise Full(f"JetStream has no room for {request}: {refusal['description']}")
    if refusal["code"] == HTTPStatus.SERVICE_UNAVAILABLE:
        raise Unavailable(f"JetStream cannot do {request} now: {refusal['description']}")
    raise Refused(request, refusal["code"], refusal.get("err_code", 0), refusal["description"])


async def persist(
    connection: Connection,
    attempt: Callable[[], Awaitable[T]],
    seconds: float,
    *,
    may_be_repeated: bool = True,
) -> T:
    """The result of an attempt, which is repeated for that many seconds while the broker is away. Raises Unavailable, Full.

    `may_be_repeated`: an attempt without an answer is repeated too. Otherwise it raises OutcomeUnknown at once.
    """
    loop = asyncio.get_running_loop()
    end, backoff = loop.time() + seconds, Backoff(0.02, 0.1)
    while True:
        try:
            return await attempt()
        except Full:
            raise
        except Unavailable as error:
            if isinstance(error, OutcomeUnknown) and not may_be_repeated:
                raise
            left = end - loop.time() - backoff.next
            if left <= 0:
                raise
        await backoff.pause()
        await connection.up(left)


def delivery_of(reply: str) -> tuple[int, int]:
    """How many times a message was delivered, and its sequence in the stream, out of its reply subject (ADR-15, both forms)."""
    tokens = reply.split(".")
    at = 4 if len(tokens) == PLAIN_ACK_TOKENS else 6
    return int(tokens[at]), int(tokens[at + 1])


# The state of a stream by its configuration


INCARNATION = "incarnation"
"""The key of the id of a stream in its metadata."""
_SUBJECTS, _COPY = "subjects-before-closing", "restored-from"


def incarnation_of(info: Mapping[str, Any]) -> str:
    """Return the incarnation of a stream: the id in its metadata, or else an id derived from its creation time.

    It distinguishes the stream from another one of the same name. `info` is the server's answer to STREAM.INFO.
    """
    config = info["config"]
    id_: str | None = config.get("metadata", {}).get(INCARNATION)
    return id_ or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{config['name']} {info['created']}"))


class StreamClosed(Unavailable):
    """The stream is being repaired or restored. The commit was not stored."""


def closed(config: Mapping[str, Any], *, copy: str | None = None) -> dict[str, Any]:
    """Return the configuration with which a stream takes no writes.

    `copy`: the SHA-256 of the snapshot that the stream is restored from. Readers wait then.
    """
    config = opened(config)
    metadata = {**config["metadata"], _SUBJECTS: msgspec.json.encode(config["subjects"]).decode()}
    if copy is not None:
        metadata[_COPY] = copy
    return {**config, "subjects": [f"closed.{config['name']}.>"], "metadata": metadata}


def opened(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with which the stream takes writes again; an open one as it is."""
    metadata = dict(config.get("metadata") or {})
    subjects = metadata.pop(_SUBJECTS, None)
    metadata.pop(_COPY, None)
    return {**config, "subjects": config["subjects"] if subjects is None else msgspec.json.decode(subjects), "metadata": metadata}


def is_closed(config: Mapping[str, Any]) -> bool:
    """Whether the stream takes no writes."""
    return _SUBJECTS in (config.get("metadata") or {})


def copy_of(config: Mapping[str, Any]) -> str | None:
    """Return the SHA-256 of the snapshot that the stream is restored from; None if all of its records are there."""
    copy: str | None = (config.get("metadata") or {}).get(_COPY)
    return copy


def reason_of(info: Mapping[str, Any]) -> str | None:
    """Return why the stream takes no writes, or None if it is open. `info` is the server's answer to STREAM.INFO."""
    config = info["config"]
    if copy_of(config) is not None:
        return (
            f"the stream {config['name']} is being restored from a copy, and has {info['state']['messages']} records so far. "
            "If the command was killed, `projections streams restore` with the same directory completes it"
        )
    if is_closed(config):
        return (
            f"the stream {config['name']} is being repaired. If the command was killed, `projections repair --apply` opens the "
            "stream again"
        )
    return None


def check_whole(info: Mapping[str, Any]) -> None:
    """Raise StreamClosed if records of the stream are not restored yet: they are not lost."""
    if copy_of(info["config"]) is not None:
        raise StreamClosed(reason_of(info))


def check_open(info: Mapping[str, Any]) -> None:
    """Raise StreamClosed if the stream takes no writes."""
    if (reason := reason_of(info)) is not None:
        raise StreamClosed(reason)


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

    def commit(self, registry: Registry) -> Commit:
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
        messages: list[StoredMessage] = []
        subject = f"$JS.API.DIRECT.GET.{self._stream}"
        async for reply in self._connection.request_many(subject, msgspec.json.encode(request)):
            if reply.status == _END_OF_BATCH or (stored := self._one(reply)) is None:
                break
            messages.append(stored)
        return messages

    def _one(self, reply: NatsReply) -> StoredMessage | None:
        if reply.status is None:
            subject, sequence = reply.header(b"Nats-Subject"), int(reply.header(b"Nats-Sequence"))
            return StoredMessage(subject, sequence, reply.data, reply.head, reply.header(b"Nats-Time-Stamp"))
        if reply.status == _NOT_FOUND:
            return None
        raise Unavailable(f"the stream {self._stream} cannot be read: {reply.description}")
