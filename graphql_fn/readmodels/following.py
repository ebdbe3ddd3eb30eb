"""The events of a log as the source of a subscription."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from graphql_fn.core.errors import PublicError
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.asking import Asking
from httpkit import Busy, CannotResume

_MARK_EVERY = 1000
"""Events that are passed over before a client gets the present position, so that it need not be given them again."""


async def followed(asking: Asking[Any], name: str, kind: type, wanted: Callable[[Any], bool]) -> AsyncIterator[SubscriptionEvent]:
    """The events of this name with values of class `kind`. The first has no value, and the position at which it starts.

    Raises Shown if there are none now, or if it cannot resume after the event that the request names.
    """
    passed = 0
    decoder: Any = msgspec.json.Decoder(kind)
    try:
        async with aclosing(asking.hub.follow(asking.after, only=frozenset({name}))) as passages:
            yield SubscriptionEvent(str((await anext(passages)).position))
            async for passage in passages:
                for frame in passage.frames:
                    value = decoder.decode(frame.data)
                    passed += 1
                    if wanted(value):
                        passed = 0
                        yield SubscriptionEvent(str(frame.position), value)
                if passed >= _MARK_EVERY:
                    passed = 0
                    yield SubscriptionEvent(str(passage.position))
    except (CannotResume, Busy) as error:
        raise PublicError(str(error)) from error
