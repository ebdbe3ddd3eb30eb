"""Reserved event streams: a stream that could not begin takes no place for good."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.hello import HELLO
from graphql_fn.http.gateway import Gateway
from httpkit.messages.body import ClientGone
from httpkit.sse.response import TooManyStreams
from httpkit.sse.single import Streams

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
