"""The context of a request's command, and the headers of an answer to a repetition."""

from __future__ import annotations

from typing import Any

import msgspec

from eventlog import Context
from eventlog.commands import Outcome
from httpkit.routes import Call


def context(call: Call[Any]) -> Context:
    """The context in which a request's command is issued."""
    return Context(
        key=call.key,
        fingerprint=call.fingerprint,
        correlation=call.request_id,
        traceparent=call.traceparent,
        actor=call.caller.actor,
    )


def context_of_many(call: Call[Any]) -> Context:
    """The context of a request's commands on several aggregates, which each take effect alone: without the request's key."""
    return msgspec.structs.replace(context(call), key=None, fingerprint=None)


def replayed(outcome: Outcome[Any, Any]) -> dict[str, str]:
    """Return the headers of an answer to an idempotency key that had taken effect before. There are none otherwise."""
    return {"Idempotent-Replayed": "true"} if outcome.replayed else {}
