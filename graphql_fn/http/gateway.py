"""The functions that are served, by name: their answers, their event streams, and the requests that each got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CollectorRegistry

from graphql_fn.core.errors import GraphqlFnError
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.over_http import HttpRequest, answer, refusal
from graphql_fn.core.over_sse import stream
from graphql_fn.core.result import QueryOutcome
from graphql_fn.http.figures import FunctionFigures
from httpkit import Asset, Caller, NotPermitted, Reply, Streams, cancels_when_gone, takes_gzip


class NoSuchFunction(GraphqlFnError):
    """No function of this name is served."""

    status = HTTPStatus.NOT_FOUND


class Gateway:
    """The functions that are served, by name, and how many requests came to what.

    `check_origin` refuses a page of another origin. `page` is what a browser gets that asks for the address of a function,
    `streams` sends events. `owners` are the services whose data functions show: a token of another service does not open them.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        registry: CollectorRegistry,
        *,
        check_origin: Callable[[web.Request, str], None],
        page: Asset,
        streams: Streams | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self._owners = owners or {}
        self._evaluators = {evaluator.function.name: evaluator for evaluator in evaluators}
        self._check_origin = check_origin
        self._page = page
        self.streams = streams or Streams()
        self._outcomes: dict[tuple[str, QueryOutcome | None], int] = {}
        registry.register(FunctionFigures(self._outcomes, self._evaluators, self.streams))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self._evaluators)

    def admit(self, name: str, caller: Caller) -> None:
        """Raise NotPermitted for a caller whose token is one of another service than the function shows."""
        owner = self._owners.get(name)
        if owner is not None and caller.realm not in (None, owner):
            raise NotPermitted(f"the function {name!r} takes tokens of {owner}, and this is one of {caller.realm}")

    def admit_query(self, http: web.Request) -> None:
        """Raise Forbidden for a query in an address by a page of another origin: it changes nothing, and causes work."""
        self._check_origin(http, "queries")

    async def answer(self, name: str, request: HttpRequest, http: web.Request) -> web.Response:
        """The answer of a function. It is given up if the client leaves. Raises NoSuchFunction."""
        evaluator = self._evaluator(name)
        with cancels_when_gone(http):
            found = await answer(evaluator, request)
        self._count(name, found.outcome)
        headers = {**found.headers, "Vary": "Accept, Accept-Encoding"}
        if len(found.body) < _COMPRESSED or not takes_gzip(http.headers.get("Accept-Encoding")):
            return Reply(found.status, headers, found.body)
        response = web.Response(status=found.status, headers=headers, body=found.body)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async def stream(self, name: str, request: HttpRequest, http: web.Request) -> web.StreamResponse:
        """The answer of a function as events. Raises NoSuchFunction, Busy."""
        try:
            found = await stream(self._evaluator(name), request)
        except GraphqlFnError as error:
            self._count(name, None)
            refused = refusal(error)
            return web.Response(status=refused.status, headers=refused.headers, body=refused.body)
        self._count(name, found.outcome)
        return await self.streams.answer(http, found.frames)

    async def page(self, name: str, http: web.Request) -> web.Response:
        """The page of a function. Raises NoSuchFunction."""
        self._evaluator(name)
        response = await self._page.answer(http)
        response.headers["Vary"] = "Accept, Accept-Encoding"
        return response

    def _evaluator(self, name: str) -> Evaluator:
        evaluator = self._evaluators.get(name)
        if evaluator is None:
            raise NoSuchFunction(f"no function is called {name!r}; there are: {', '.join(sorted(self._evaluators))}")
        return evaluator

    def _count(self, name: str, outcome: QueryOutcome | None) -> None:
        self._outcomes[name, outcome] = self._outcomes.get((name, outcome), 0) + 1


_COMPRESSED = 1024
"""Bytes from which on a result is compressed, if the client takes that."""
