"""The context of resolvers of a read model for one request: its queries at one moment, and loads that are put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Generic, TypeVar

import structlog

from graphql_fn.core.context import NotAnswered, RequestContext
from graphql_fn.core.errors import Code, PublicError
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome
from graphql_fn.core.running.turns import RequestTimeUp, Turns
from graphql_fn.readmodels.loading import BatchLoader
from httpkit import Hub
from projections import AggregateParked, Argument, ArgumentRefused, Behind, ProjectionError, Queryable, Row
from servicekit import NotWritten, ReadReplica, ReplicaTransaction

_log = structlog.get_logger(__name__)

G = TypeVar("G")

_AWAY = "the read model is not available at the moment; try again"


async def sizes_of(replica: ReadReplica) -> Mapping[str, int]:
    """About how many rows the tables have; none are known while they cannot be read, which the fields themselves report."""
    try:
        return await replica.sizes()
    except ProjectionError:
        return {}


class Asking(RequestContext, Generic[G]):
    """The context of one request. `queries` makes the queries on a database.

    All queries of the request see the tables as the first query sees them.
    """

    def __init__(self, replica: ReadReplica, queries: Callable[[Queryable], G], request: GraphQLRequest) -> None:
        self.after = request.after
        self._replica = replica
        self._queries = queries
        self._least = request.min_sequence
        self._opening = asyncio.Lock()
        self._held = AsyncExitStack()
        self._reading: ReplicaTransaction | None = None
        self._made: G | None = None
        self._loaders: dict[tuple[Any, ...], BatchLoader[Any, Any]] = {}
        self._turns: Turns | None = None

    async def begin(self, turns: Turns) -> None:
        """See `RequestContext.begin`: wait for the position that the request names."""
        self._turns = turns
        if self._least is None:
            return
        try:
            await turns.wait_for(self._replica.wait_for(self._least, turns.deadline - time.monotonic()))
        except Behind as error:
            raise NotAnswered(f"{error}; try again", QueryOutcome.BEHIND) from error
        except RequestTimeUp as error:
            text = f"the read model did not answer in time, and sequence {self._least} was asked for; try again"
            raise NotAnswered(text, QueryOutcome.BEHIND) from error
        except AggregateParked as error:
            raise NotAnswered(str(error), QueryOutcome.PARKED) from error
        except NotWritten as error:
            raise NotAnswered(str(error), QueryOutcome.NOT_WRITTEN) from error
        except ProjectionError as error:
            _log.warning("read model cannot be read", reason=str(error))
            raise NotAnswered(_AWAY, QueryOutcome.BEHIND) from error

    async def end(self) -> None:
        """See `RequestContext.end`. Statements that still run are interrupted."""
        try:
            for loader in self._loaders.values():
                await loader.close()
            self._loaders.clear()  # they refer to this context, which is freed at once without them
        finally:
            await self._held.aclose()

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The position of the log for which the result is true, if it shows tables."""
        return {} if self._reading is None else {"sequence": self._reading.sequence}

    async def reading(self) -> ReplicaTransaction:
        """The read transaction of the request. Raises PublicError if the database cannot be read now."""
        async with self._opening:
            if self._reading is None:
                self._reading = await self._held.enter_async_context(_opened(self._replica))
        return self._reading

    async def database(self) -> Queryable:
        """The database at the moment of the request. Raises PublicError if it cannot be read now."""
        return _PublicErrors(await self.reading())

    async def queries(self) -> G:
        """The queries on the database. Raises PublicError."""
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

            loader = self._loaders[which] = BatchLoader(fetch, self._rests)
        return loader.load(key)

    def _rests(self) -> bool:
        return self._turns is not None and self._turns.resting > 0

    async def count(self, query: Callable[..., Awaitable[Any]], key: Any) -> int:
        """As `load`, for a query of numbers: 0 for a key without one."""
        found: int | None = await self.load(query, key)
        return found or 0

    @property
    def hub(self) -> Hub:
        """The events. Raises PublicError if there are none."""
        hub = self._replica.hub
        if hub is None:
            raise PublicError("subscriptions need the broker: nats_url is not set", code=Code.UNAVAILABLE)
        return hub


@asynccontextmanager
async def _opened(replica: ReadReplica) -> AsyncIterator[ReplicaTransaction]:
    async with AsyncExitStack() as held:
        with _public():
            reading = await held.enter_async_context(replica.transaction())
        yield reading


@contextmanager
def _public() -> Iterator[None]:
    """Raise the error that a client may see, if the database cannot be read or refuses a value of the request."""
    try:
        yield
    except ArgumentRefused as error:
        raise PublicError("an argument has a value that the database cannot hold") from error
    except ProjectionError as error:
        _log.warning("read model cannot be read", reason=str(error))
        raise PublicError(_AWAY, code=Code.UNAVAILABLE) from error


class _PublicErrors:
    """A database whose errors are for clients."""

    def __init__(self, reading: Queryable) -> None:
        self.dialect = reading.dialect
        self._reading = reading

    async def fetch(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        with _public():
            return await self._reading.fetch(sql, *arguments)

    async def fetch_in_thread(self, sql: str, *arguments: Argument) -> Sequence[Row]:
        with _public():
            return await self._reading.fetch_in_thread(sql, *arguments)

    async def fetch_one(self, sql: str, *arguments: Argument) -> Row | None:
        with _public():
            return await self._reading.fetch_one(sql, *arguments)
