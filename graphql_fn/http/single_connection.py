"""GraphQL over SSE in single connection mode: one event stream for all operations of a client.

The protocol is https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md. PUT reserves a stream, and its answer is the
token of the stream. GET opens it. POST starts an operation whose results go into it, and DELETE ends one. An event names its
operation, so it has no id after which a client could resume: that is for distinct connections.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from graphql_fn.core.errors import BadRequest, GraphqlFnError, masked
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import OperationResult

_log = structlog.get_logger(__name__)

TOKEN_HEADER = "X-GraphQL-Event-Stream-Token"  # noqa: S105 - the name of a header
OPERATIONS = 100
"""Operations of one stream at a time."""
_WAITING = 256
"""Events that wait for a client; an operation waits for room for its next one."""
_UNOPENED = 30.0
"""Seconds for which a reserved stream waits for its client."""


class NoSuchStream(GraphqlFnError):
    """No event stream has this token, or it has ended."""

    status = HTTPStatus.NOT_FOUND


class StreamTaken(GraphqlFnError):
    """The stream is open already, or has an operation of this id."""

    status = HTTPStatus.CONFLICT


class TooManyStreams(GraphqlFnError):
    """No more streams, or operations of a stream, are served now."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Reservations:
    """The reserved and open streams of this process, at most `most`, by function and token."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._streams: dict[tuple[str, str], ReservedStream] = {}

    def reserve(self, function: str) -> str:
        """Reserve a stream for a function, and return its token. Raises TooManyStreams."""
        if len(self._streams) >= self._most:
            raise TooManyStreams(f"{self._most} streams are reserved already; try again later")
        token = secrets.token_urlsafe(24)
        place = function, token
        self._streams[place] = ReservedStream(lambda: self._streams.pop(place, None))
        return token

    def find(self, function: str, token: str) -> ReservedStream:
        """The stream with a token. Raises NoSuchStream."""
        found = self._streams.get((function, token))
        if found is None:
            raise NoSuchStream("no event stream of this function has this token: reserve one with PUT")
        return found


class ReservedStream:
    """A stream and its operations. `on_end` is called when it ends. The caller of `open` calls `end`."""

    def __init__(self, on_end: Any) -> None:
        self._on_end = on_end
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._opened = False
        self._expiry = asyncio.get_running_loop().call_later(_UNOPENED, self.end)

    def open(self) -> AsyncGenerator[bytes, None]:
        """The frames of the stream. Raises StreamTaken if it is open."""
        if self._opened:
            raise StreamTaken("the event stream is open already")
        self._opened = True
        self._expiry.cancel()
        return self._all()

    async def _all(self) -> AsyncGenerator[bytes, None]:
        yield b":\n\n"  # a client of fetch waits for the first bytes
        while True:
            yield await self._frames.get()

    def start(self, id_: str, evaluator: Evaluator, request: GraphQLRequest) -> None:
        """Start an operation. Raises StreamTaken, TooManyStreams."""
        if id_ in self._operations:
            raise StreamTaken(f"the event stream has an operation {id_!r}")
        if len(self._operations) >= OPERATIONS:
            raise TooManyStreams(f"the event stream has {OPERATIONS} operations; end one of them first")
        task = self._operations[id_] = asyncio.create_task(self._run(id_, evaluator, request))
        task.add_done_callback(lambda _: self._operations.pop(id_, None))

    async def _run(self, id_: str, evaluator: Evaluator, request: GraphQLRequest) -> None:
        try:
            await self._results(id_, evaluator, request)
        except Exception:  # noqa: BLE001 - the stream has other operations
            _log.exception("an operation ended early", function=evaluator.function.name, operation=id_)
            await self._send(id_, {"errors": [masked()]})
        await self._frames.put(_frame("complete", {"id": id_}))

    async def _results(self, id_: str, evaluator: Evaluator, request: GraphQLRequest) -> None:
        found = await evaluator.subscribe(request)
        if isinstance(found, OperationResult):
            await self._send(id_, found.document)
        else:
            async with aclosing(found):
                async for update in found:
                    if update.result is not None:
                        await self._send(id_, update.result.document)

    async def _send(self, id_: str, document: dict[str, Any]) -> None:
        await self._frames.put(_frame("next", {"id": id_, "payload": document}))

    def stop(self, id_: str) -> None:
        """End an operation; one that has ended already is left alone."""
        task = self._operations.get(id_)
        if task is not None:
            task.cancel()

    def end(self) -> None:
        """End the stream and its operations. Nothing happens if it has ended."""
        self._expiry.cancel()
        for task in self._operations.values():
            task.cancel()
        self._on_end()


def operation_id(request: GraphQLRequest) -> str:
    """The id of an operation, `extensions.operationId`. Raises BadRequest."""
    found = (request.extensions or {}).get("operationId")
    if not isinstance(found, str) or not 1 <= len(found) <= 200:
        raise BadRequest("extensions.operationId must be a text of 1 to 200 characters")
    return found


def _frame(event: str, value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(value))
