"""Requests to JetStream's own interface (`$JS.API.>`), in its own JSON.

nats-py's manager does the same with typed copies of the configurations, which lag behind the server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

import msgspec
import nats.errors
from nats.aio.client import Client

from eventlog.errors import EventLogError, Unavailable

PREFIX = "$JS.API."
TIMEOUT = 5.0

NO_MESSAGE = 10037
CONSUMER_MISSING = 10014
CONSUMER_EXISTS = 10148
NAME_IN_USE = 10058
STREAM_MISSING = 10059
STORAGE_EXCEEDED = 10047


class HasClient(Protocol):
    """What is wanted of a connection here: the client that lives now. A watchdog may replace it, so it is asked for each time."""

    @property
    def client(self) -> Client:
        """The live client."""


class Refused(EventLogError):
    """JetStream refused a request: `number` is its own error number (`err_code` in the server's errors.json)."""

    def __init__(self, request: str, number: int, description: str) -> None:
        super().__init__(f"JetStream refuses {request}: {description} ({number})")
        self.number = number
        self.description = description


async def call(
    connection: HasClient,
    request: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - nats-py's own, it gives up the reply's inbox
) -> dict[str, Any]:
    """The answer to a request, `STREAM.INFO.GCTD` say. Raises Refused, Unavailable (no answer, no leader, no JetStream)."""
    client = connection.client
    if not client.is_connected:  # nats-py would keep the request until it is connected again, or its time is over
        raise Unavailable(f"there is no connection to NATS for {request}")
    try:
        reply = await client.request(PREFIX + request, msgspec.json.encode(body) if body else b"", timeout=timeout)
    except (nats.errors.Error, OSError) as error:
        raise Unavailable(f"JetStream does not answer to {request}: {str(error) or type(error).__name__}") from error
    answer: dict[str, Any] = msgspec.json.decode(reply.data)
    if (refusal := answer.get("error")) is None:
        return answer
    if refusal["code"] == HTTPStatus.SERVICE_UNAVAILABLE:
        raise Unavailable(f"JetStream cannot do {request} now: {refusal['description']}")
    raise Refused(request, refusal.get("err_code", 0), refusal["description"])


__all__ = [
    "CONSUMER_EXISTS",
    "CONSUMER_MISSING",
    "NAME_IN_USE",
    "NO_MESSAGE",
    "PREFIX",
    "STORAGE_EXCEEDED",
    "STREAM_MISSING",
    "HasClient",
    "Refused",
    "call",
]
