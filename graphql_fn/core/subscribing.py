"""Subscriptions: events in, results out, each with the id under which a client that was cut off goes on."""

from __future__ import annotations

from typing import Any, Final

import attrs

from graphql_fn.core.result import Result


class _Nothing:
    """The type of NOTHING."""


NOTHING: Final = _Nothing()
"""The value of an event that says only how far the subscription has come."""


@attrs.frozen
class SubscriptionEvent:
    """What the source of a subscription gives: the value that its field resolves, and the place after which it goes on."""

    id: str
    value: Any = NOTHING


@attrs.frozen
class SubscriptionUpdate:
    """What a subscriber is sent: the id of the event, and the result that it led to (None: there is nothing new)."""

    id: str | None
    result: Result | None
