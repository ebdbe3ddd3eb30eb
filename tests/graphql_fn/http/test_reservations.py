"""Reserved event streams: a stream that could not begin takes no place for good."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web
from graphql import GraphQLField, GraphQLInt, GraphQLObjectType, GraphQLSchema
from prometheus_client import CollectorRegistry

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.http.gateway import Gateway
from graphql_fn.http.single_connection import ReservedStream
from httpkit.messages.body import ClientGone
from httpkit.sse.stream import Streams, TooManyStreams

NAME = HELLO.name


class _Gone:
    """A request whose client has closed the connection."""

    transport = None


def gateway() -> Gateway:
    """A gateway that takes one stream."""
    return Gateway([Evaluator(HELLO)], CollectorRegistry(), page=cast("Any", None), streams=Streams(most=1))


def reserved(served: Gateway) -> str:
    answer = served.reserve(NAME)
    assert answer.status == 201, answer.text
    assert answer.text is not None
    return answer.text


async def test_a_client_that_is_gone_gives_its_place_back() -> None:
    served = gateway()
    for _ in range(3):
        with pytest.raises(ClientGone):
            await served.follow(NAME, reserved(served), cast("web.Request", _Gone()))


async def test_a_stream_that_is_refused_can_be_opened_later() -> None:
    served = gateway()
    token = reserved(served)
    served.streams.most = 0
    with pytest.raises(TooManyStreams):
        await served.follow(NAME, token, cast("web.Request", _Gone()))
    served.streams.most = 1
    with pytest.raises(ClientGone):  # and not: the event stream is open already
        await served.follow(NAME, token, cast("web.Request", _Gone()))


async def _one_and_a_defect(_root: Any, _info: Any) -> AsyncIterator[SubscriptionEvent]:
    yield SubscriptionEvent("1", 1)
    raise RuntimeError("a secret")


async def test_an_operation_that_ends_early_is_not_taken_for_complete() -> None:
    number = GraphQLField(GraphQLInt, resolve=lambda value, _: value, subscribe=_one_and_a_defect)
    schema = GraphQLSchema(HELLO.schema.query_type, subscription=GraphQLObjectType("Subscription", {"number": number}))
    stream = ReservedStream(lambda: None)
    frames = stream.open()
    stream.start("a", Evaluator(Function(name="numbers", schema=schema)), GraphQLRequest("subscription { number }"))
    async with asyncio.timeout(10):
        found = [await anext(frames) for _ in range(4)]
    stream.end()
    events = [frame.decode().partition("\ndata: ") for frame in found[1:]]
    assert [event for event, _, _ in events] == ["event: next", "event: next", "event: complete"]
    first, last = (json.loads(data)["payload"] for _, _, data in events[:2])
    assert first == {"data": {"number": 1}}
    [error] = last["errors"]
    assert (error["message"], error["extensions"]["code"]) == ("internal server error", "INTERNAL_SERVER_ERROR")
