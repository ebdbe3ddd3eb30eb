"""GraphQL over Server-Sent Events: the protocol of graphql-sse in distinct connections mode, one operation for each connection.

Each result is an event `next`, also an error of the operation. The end is an event `complete` (with an empty `data`, without
which an EventSource leaves it out). Events of subscriptions have ids: `Last-Event-ID` resumes after one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache

import attrs

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.over_http import JSON, RESPONSE, HttpRequest, read, weights
from graphql_fn.core.result import OperationResult, QueryOutcome
from graphql_fn.core.subscribing import SubscriptionUpdate

EVENTS = "text/event-stream"
COMPLETE = b"event: complete\ndata:\n\n"


@attrs.frozen
class EventWriter:
    """The events to send, and the state of the request at its start."""

    frames: AsyncGenerator[bytes, None]
    outcome: QueryOutcome


@lru_cache(maxsize=256)
def wants_stream(accept: str | None) -> bool:
    """Whether a client asks for events: it names their type, and prefers no other type to it."""
    if accept is None or EVENTS not in accept.lower():
        return False
    liked = weights(accept)
    return liked.get(EVENTS, 0) > max(liked.get(JSON, 0), liked.get(RESPONSE, 0))


async def stream(evaluator: Evaluator, request: HttpRequest) -> EventWriter:
    """Answer a request with events. Raises errors of reading a GraphQL request, and the errors of `Evaluator.subscribe`."""
    found = await evaluator.subscribe(read(request))
    if isinstance(found, OperationResult):
        return EventWriter(_once(found), found.outcome)
    return EventWriter(_all(found), QueryOutcome.SUBSCRIBED)


async def _once(result: OperationResult) -> AsyncGenerator[bytes, None]:
    yield _frame(SubscriptionUpdate(None, result)) + COMPLETE


async def _all(updates: AsyncGenerator[SubscriptionUpdate, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(updates):
        async for update in updates:
            yield _frame(update)
    yield COMPLETE


def _frame(update: SubscriptionUpdate) -> bytes:
    place = b"" if update.id is None else b"id: %b\n" % update.id.encode()
    if update.result is None:
        return place + b"\n"
    return b"%bevent: next\ndata: %b\n\n" % (place, update.result.encoded())
