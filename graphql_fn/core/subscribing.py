"""Subscriptions: events in, results out, each with the id after which a client that was cut off resumes."""

from __future__ import annotations

from typing import Any, Final

import attrs

from graphql_fn.core.result import OperationResult


class _Nothing:
    """The type of NOTHING."""


NOTHING: Final = _Nothing()
"""The value of an event that says only how far the subscription has come."""


@attrs.frozen
class SubscriptionEvent:
    """An item of the source of a subscription: the value that its field resolves, and the place after which it resumes."""

    id: str
    value: Any = NOTHING


@attrs.frozen
class SubscriptionUpdate:
    """An item for a subscriber: the id of the event, and its result (None: there is nothing new)."""

    id: str | None
    result: OperationResult | None
