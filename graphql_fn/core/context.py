"""The context of a request: the objects that its resolvers share, with a beginning and an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql_fn.core.errors import PublicError
from graphql_fn.core.result import QueryOutcome
from graphql_fn.core.running.turns import Turns


class NotAnswered(PublicError):
    """The request cannot be answered now. `outcome` is the reason."""

    def __init__(self, message: str, outcome: QueryOutcome) -> None:
        super().__init__(message, code=outcome.name)
        self.outcome = outcome


class RequestContext:
    """Base of the contexts of functions that hold something for the time of a request."""

    async def begin(self, turns: Turns) -> None:
        """Prepare for the first field of the work that has these `turns`. Raises NotAnswered."""

    async def end(self) -> None:
        """Give up what the request holds. It is called once, also if the request was cancelled."""

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The `extensions` of the result, after its fields were resolved."""
        return {}
