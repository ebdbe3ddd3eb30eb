"""The result of a request, or its refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import attrs
import msgspec
from graphql import GraphQLError


class QueryOutcome(Enum):
    """How far a request came."""

    EXECUTED = "executed"
    """It was run: there is `data`, perhaps null, and `errors` where fields failed."""
    SUBSCRIBED = "subscribed"
    """It is a subscription, and its events are sent as they come."""
    REFUSED = "refused"
    """The engine found a problem before anything was run: a syntax error, an unknown field, variables of the wrong type."""
    OVER_LIMIT = "over_limit"
    """It asks for more than is given."""
    OUT_OF_TIME = "out_of_time"
    """It was given up after the longest time that one may take."""
    BEHIND = "behind"
    """The tables do not have the sequence of the log for which the request waited."""
    NOT_WRITTEN = "not_written"
    """The request asks for a sequence that the log does not have."""
    PARKED = "parked"
    """The tables leave the commit out for which the request waited: its aggregate is parked."""
    CHANGES = "changes"
    """The request would change data, and arrived by a method that must not change data."""


class OperationResult(msgspec.Struct, frozen=True):
    """A result: `document` is the JSON object of the answer (values that JSON has), `outcome` how far the request came."""

    document: dict[str, Any]
    outcome: QueryOutcome

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return "errors" in self.document

    def extended(self, extensions: Mapping[str, Any]) -> OperationResult:
        """The result with these `extensions`, if it has data."""
        if not extensions or "data" not in self.document:
            return self
        return OperationResult({**self.document, "extensions": dict(extensions)}, self.outcome)

    def encoded(self) -> bytes:
        """The JSON text, in UTF-8."""
        return msgspec.json.encode(self.document)


@attrs.frozen
class RequestRefused(Exception):
    """A request that is not run, and why. `code` is the code of its errors, if it is not the usual one of the outcome."""

    errors: Sequence[GraphQLError]
    outcome: QueryOutcome = QueryOutcome.REFUSED
    code: str | None = None
