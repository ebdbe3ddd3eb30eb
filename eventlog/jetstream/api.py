"""Requests to JetStream's own interface (`$JS.API.>`), in its own JSON.

nats-py's manager does the same with typed copies of the configurations, which lag behind the server's.
"""

from __future__ import annotations

import asyncio
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
