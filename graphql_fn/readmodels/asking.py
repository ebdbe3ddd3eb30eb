"""The context of resolvers of a read model for one request: its queries, and loads that are put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import structlog

from graphql_fn.core.errors import PublicError
from graphql_fn.readmodels.loading import BatchLoader
from httpkit.sse.hub import Hub
from projections.errors import ProjectionError
from projections.store import Queryable
from servicekit.replica import ReadReplica

_log = structlog.get_logger(__name__)

G = TypeVar("G")


class Asking(Generic[G]):
    """The context of one request. `queries` makes the queries on a database; a subscription resumes after `after`."""

    def __init__(self, onlooker: ReadReplica, queries: Callable[[Queryable], G], after: str | None) -> None:
        self.after = after
        self._onlooker = onlooker
        self._queries = queries
        self._made: G | None = None
        self._loaders: dict[tuple[Any, ...], BatchLoader[Any, Any]] = {}

    async def database(self) -> Queryable:
        """The database. Raises Shown if it cannot be read now."""
        try:
            return await self._onlooker.reader()
        except ProjectionError as error:
            _log.warning("read model cannot be opened", reason=str(error))
            raise PublicError("the read model is not available at the moment; try again") from error

    async def queries(self) -> G:
        """The queries on the database. Raises Shown."""
        if self._made is None:
            self._made = self._queries(await self.database())
        return self._made

    def load(self, query: Callable[..., Awaitable[Any]], key: Any, *arguments: Any) -> Awaitable[Any]:
        """The result of a query of many keys, with these arguments, for one of the keys: together with the other loads of it.

        `query` is a method of the class of the queries.
        """
        which = (query, *arguments)
        loader = self._loaders.get(which)
        if loader is None:

            async def fetch(keys: Any) -> Any:
                return await query(await self.queries(), keys, *arguments)

            loader = self._loaders[which] = BatchLoader(fetch)
        return loader.load(key)

    @property
    def hub(self) -> Hub:
        """The events. Raises Shown if there are none."""
        hub = self._onlooker.hub
        if hub is None:
            raise PublicError("subscriptions need the broker: nats_url is not set")
        return hub
