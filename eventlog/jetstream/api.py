"""Requests to JetStream's own interface (`$JS.API.>`), in its own JSON, and the state of a stream that its answers show.

nats-py's manager does the same with typed copies of the configurations, which lag behind the server's.

A closed stream has a subject that no process writes to, and its own subjects are in its metadata. nats-server restores a stream
record by record. Until the end it shows the stream as if it were whole, and accepts messages for it. So a restored stream is
closed until all of its records are there: readers wait, and no commit gets a sequence that belongs to a record.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from eventlog.errors import EventLogError, OutcomeUnknown, Unavailable
from eventlog.jetstream.transport.connection import Connection

T = TypeVar("T")

PREFIX = "$JS.API."
TIMEOUT = 5.0
_PAUSE = 0.1

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
    found: dict[str, int] = {}
    while True:
        info = await ask(connection, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": len(found)})
        page = info["state"].get("subjects") or {}
        found |= page
        if not page or len(found) >= info.get("total", 0):
            return found


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
    pause: float = _PAUSE,
) -> T:
    """The result of an attempt, which is repeated for that many seconds while the broker is away. Raises Unavailable, Full.

    `may_be_repeated`: an attempt without an answer is repeated too. Otherwise it raises OutcomeUnknown at once. `pause` is in
    seconds.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        try:
            return await attempt()
        except Full:
            raise
        except Unavailable as error:
            if isinstance(error, OutcomeUnknown) and not may_be_repeated:
                raise
            left = end - loop.time() - pause
            if left <= 0:
                raise
        await asyncio.sleep(pause)
        await connection.up(left)


def delivery_of(reply: str) -> tuple[int, int]:
    """How many times a message was delivered, and its sequence in the stream, out of its reply subject (ADR-15, both forms)."""
    tokens = reply.split(".")
    at = 4 if len(tokens) == PLAIN_ACK_TOKENS else 6
    return int(tokens[at]), int(tokens[at + 1])


# The state of a stream by its configuration


INCARNATION = "incarnation"
"""The key of the id of a stream in its metadata."""
_REPAIRED = "~"
_SUBJECTS, _COPY = "subjects-before-closing", "restored-from"


def incarnation_of(info: Mapping[str, Any]) -> str:
    """Return the incarnation of a stream: the id in its metadata, or else an id derived from its creation time.

    It distinguishes the stream from another one of the same name. `info` is the server's answer to STREAM.INFO.
    """
    config = info["config"]
    id_: str | None = config.get("metadata", {}).get(INCARNATION)
    return id_ or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{config['name']} {info['created']}"))


def after_repair(incarnation: str) -> str:
    """The incarnation of a stream after one more repair with tombstones: `x`, `x~1`, `x~2`."""
    origin, _, number = incarnation.partition(_REPAIRED)
    return f"{origin}{_REPAIRED}{int(number or 0) + 1}"


def is_repaired(incarnation: str, before: str) -> bool:
    """Whether a stream of this incarnation is a repaired stream of the incarnation `before`."""
    origin, _, number = incarnation.partition(_REPAIRED)
    earlier, _, earlier_number = before.partition(_REPAIRED)
    return origin == earlier and int(number or 0) > int(earlier_number or 0)


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
