"""Between a request and the command that it leads to: the context of the command, and what the answer to a repetition says."""

from __future__ import annotations

from typing import Any

from eventlog import Context
from eventlog.commands import Outcome
from httpkit.routes import Call


def context(call: Call[Any]) -> Context:
    """The context in which a request's command is issued."""
    return Context(key=call.key, fingerprint=call.fingerprint, correlation=call.request_id, traceparent=call.traceparent)


def replayed(outcome: Outcome[Any, Any]) -> dict[str, str]:
    """The headers that tell that the idempotency key had taken effect before; none where it had not."""
    return {"Idempotent-Replayed": "true"} if outcome.replayed else {}
