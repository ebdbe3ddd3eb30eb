"""The gateway: `/function/<name>` on the same edge as the other services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from http import HTTPStatus
from importlib.resources import files
from math import inf

import attrs
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from graphql_fn.core.errors import GraphqlFnError
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.over_http import HTML, JSON, RESPONSE, HttpRequest, answer, read, refusal, wants_page, weights
from graphql_fn.core.over_sse import EVENTS, stream, wants_stream
from graphql_fn.core.result import QueryOutcome
from graphql_fn.http.single_connection import TOKEN_HEADER, Reservations, operation_id
from httpkit.messages.fields import header, member, message, path, payload, query
from httpkit.problems import NotPermitted
from httpkit.routes import Call, Nothing, Route
from httpkit.server.callers import Caller, Scope
from httpkit.server.protocol import HttpConnection
from httpkit.server.reply import Reply
from httpkit.sse.single import Streams
from httpkit.static.pages import Asset, Pages

_PRODUCES = (JSON, RESPONSE)
_NOTHING_RUN = "unreadable"
_MIN_SEQ = "Wait until the tables have this sequence of the log."


class NoSuchFunction(GraphqlFnError):
    """No function of this name is served."""

    status = HTTPStatus.NOT_FOUND


@message
class Post:
    """A request as a body: the text of a query, or a JSON object with `query`, `variables` and `operationName`."""

    name: str = path(description="The name of the function.", example="graphql")
    min_seq: str | None = header("Min-Seq", default=None, description=_MIN_SEQ)
    body: bytes = payload("*/*")


@message
class Get:
    """A query in the parameters."""

    name: str = path(description="The name of the function.", example="graphql")
    text: str | None = query(name="query", default=None, multiline=True, description="The text of the query.")
    variables: str | None = query(default=None, multiline=True, description="A JSON object.")
    operation: str | None = query(name="operationName", default=None, description="Which operation of the text is run.")
    extensions: str | None = query(default=None, multiline=True, description="A JSON object.")
    min_seq: str | None = query(default=None, description=_MIN_SEQ)


@message
class Functions:
    """The names of the functions that are served."""

    functions: tuple[str, ...] = member(example=["graphql", "pantry", "tracker"])


class Gateway:
    """The functions that are served, by name, and how many requests came to what.

    `page` is what a browser gets that asks for the address of a function, `streams` sends events. `owners` are the services
    whose data functions show: a token of another service does not open them.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        registry: CollectorRegistry,
        *,
        page: Asset,
        streams: Streams | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self._owners = owners or {}
        self._evaluators = {evaluator.function.name: evaluator for evaluator in evaluators}
        self._page = page
        self.streams = streams or Streams()
        self._reserved = Reservations(most=self.streams.most)
        self._outcomes: dict[tuple[str, QueryOutcome | None], int] = {}
        for collector in (_Requests(self._outcomes), _Caches(self._evaluators), _Subscribers(self.streams)):
            registry.register(collector)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self._evaluators)

    def admit(self, name: str, caller: Caller) -> None:
        """Raise NotPermitted for a caller whose token is one of another service than the function shows."""
        owner = self._owners.get(name)
        if owner is not None and caller.realm not in (None, owner):
            raise NotPermitted(f"the function {name!r} takes tokens of {owner}, and this is one of {caller.realm}")

    async def answer(self, name: str, request: HttpRequest, http: web.Request) -> web.Response:
        """The answer of a function. It is given up if the client leaves. Raises NoSuchFunction."""
        evaluator, connection = self._evaluator(name), http.protocol
        with connection.cancels_when_gone() if isinstance(connection, HttpConnection) else nullcontext():
            found = await answer(evaluator, request)
        self._count(name, found.outcome)
        headers = {**found.headers, "Vary": "Accept, Accept-Encoding"}
        if len(found.body) < _COMPRESSED or not _takes_gzip(http.headers.get("Accept-Encoding")):
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
            return _refused(error)
        self._count(name, found.outcome)
        return await self.streams.answer(http, found.frames)

    def reserve(self, name: str) -> web.Response:
        """Reserve an event stream for several operations. Raises NoSuchFunction."""
        self._evaluator(name)
        return _answered(lambda: web.Response(status=HTTPStatus.CREATED, text=self._reserved.reserve(name)))

    async def follow(self, name: str, token: str, http: web.Request) -> web.StreamResponse:
        """The reserved event stream. Raises NoSuchFunction, Busy."""
        self._evaluator(name)
        try:
            frames = self._reserved.find(name, token).open()
        except GraphqlFnError as error:
            return _refused(error)
        return await self.streams.answer(http, frames)

    def start(self, name: str, token: str, request: HttpRequest) -> web.Response:
        """Start an operation whose results go into a reserved event stream. Raises NoSuchFunction."""
        evaluator = self._evaluator(name)

        def started() -> web.Response:
            asked = read(request)
            self._reserved.find(name, token).start(operation_id(asked), evaluator, asked)
            self._count(name, QueryOutcome.SUBSCRIBED)
            return web.Response(status=HTTPStatus.ACCEPTED)

        return _answered(started)

    def stop(self, name: str, token: str, operation: str) -> web.Response:
        """End an operation of a reserved event stream. Raises NoSuchFunction."""
        self._evaluator(name)

        def stopped() -> web.Response:
            self._reserved.find(name, token).stop(operation)
            return web.Response(status=HTTPStatus.OK)

        return _answered(stopped)

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


def _refused(error: GraphqlFnError) -> web.Response:
    found = refusal(error)
    return web.Response(status=found.status, headers=found.headers, body=found.body)


def _answered(work: Callable[[], web.Response]) -> web.Response:
    """The answer of some work, or its refusal."""
    try:
        return work()
    except GraphqlFnError as error:
        return _refused(error)


@attrs.frozen(eq=False)
class _Requests(Collector):
    """The outcomes of requests."""

    _outcomes: Mapping[tuple[str, QueryOutcome | None], int]

    def collect(self) -> Sequence[CounterMetricFamily]:
        text = "Requests of functions, by outcome."
        found = CounterMetricFamily("graphql_requests", text, labels=["function", "outcome"])
        for (name, outcome), count in self._outcomes.items():
            found.add_metric([name, outcome.value if outcome else _NOTHING_RUN], count)
        return [found]


@attrs.frozen(eq=False)
class _Caches(Collector):
    """The documents that functions cache."""

    _evaluators: Mapping[str, Evaluator]

    def collect(self) -> Sequence[CounterMetricFamily | GaugeMetricFamily]:
        kept = GaugeMetricFamily("graphql_documents", "Documents that are remembered.", labels=["function"])
        asked = CounterMetricFamily("graphql_document_lookups", "Documents looked up.", labels=["function", "result"])
        for name, evaluator in self._evaluators.items():
            documents = evaluator.documents
            kept.add_metric([name], len(documents))
            asked.add_metric([name, "hit"], documents.hits)
            asked.add_metric([name, "miss"], documents.misses)
        return [kept, asked]


@attrs.frozen(eq=False)
class _Subscribers(Collector):
    """Who follows something."""

    _streams: Streams

    def collect(self) -> Sequence[GaugeMetricFamily]:
        return [GaugeMetricFamily("graphql_subscribers", "Open event streams.", value=self._streams.open)]


async def invoke(request: Post, call: Call[Gateway]) -> web.StreamResponse:
    """Evaluate the request in the body."""
    call.services.admit(request.name, call.caller)
    asked = _http_request(call, {}, request.body)
    if (token := _token(call.http)) is not None:
        return call.services.start(request.name, token, asked)
    if _is_stream(call.http):
        return await call.services.stream(request.name, asked, call.http)
    return await call.services.answer(request.name, asked, call.http)


async def ask(request: Get, call: Call[Gateway]) -> web.StreamResponse:
    """Evaluate the query in the parameters; mutations are refused. A browser gets a page to write queries on."""
    asked = _http_request(call, call.http.query)
    if _is_page(call.http):
        return await call.services.page(request.name, call.http)
    call.services.admit(request.name, call.caller)
    if (token := _token(call.http)) is not None:
        return await call.services.follow(request.name, token, call.http)
    if _is_stream(call.http):
        return await call.services.stream(request.name, asked, call.http)
    return await call.services.answer(request.name, asked, call.http)


@message
class Reserve:
    """Names a function."""

    name: str = path(description="The name of the function.", example="graphql")


@message
class Stop:
    """Names an operation of an event stream."""

    name: str = path(description="The name of the function.", example="graphql")
    operation: str = query(name="operationId", min_length=1, max_length=200, description="The id of the operation.")


async def reserve(request: Reserve, call: Call[Gateway]) -> web.Response:
    """Reserve an event stream for several operations; the answer is its token."""
    call.services.admit(request.name, call.caller)
    return call.services.reserve(request.name)


async def stop(request: Stop, call: Call[Gateway]) -> web.Response:
    """End an operation of an event stream."""
    call.services.admit(request.name, call.caller)
    return call.services.stop(request.name, _token(call.http) or "", request.operation)


def _token(http: web.Request) -> str | None:
    """The token of a reserved event stream that a request names."""
    return http.headers.get(TOKEN_HEADER) or (http.query.get("token") if http.query_string else None)


async def list_functions(_: Nothing, call: Call[Gateway]) -> Functions:
    """The functions that are served."""
    return Functions(functions=call.services.names)


def _http_request(call: Call[Gateway], parameters: Mapping[str, str], body: bytes = b"") -> HttpRequest:
    http = call.http
    return HttpRequest(
        method=http.method,
        parameters=parameters,
        content_type=http.headers.get("Content-Type"),
        accept=http.headers.get("Accept"),
        body=body,
        request_id=call.request_id,
        after=http.headers.get("Last-Event-ID") or (http.query.get("last_event_id") if http.query_string else None),
        min_sequence=http.headers.get("Min-Seq") or (http.query.get("min_seq") if http.query_string else None),
    )


def _is_stream(request: web.Request) -> bool:
    return request.method != "HEAD" and wants_stream(request.headers.get("Accept"))


def _is_page(request: web.Request) -> bool:
    return wants_page(request.headers.get("Accept"))


_COMPRESSED = 1024
"""Bytes from which on a result is compressed, if the client takes that."""


@lru_cache(maxsize=256)
def _takes_gzip(accept: str | None) -> bool:
    """Whether a client takes gzip (RFC 9110, 12.5.3)."""
    return accept is not None and weights(accept).get("gzip", 0) > 0


_STATUSES = (400, 405, 406, 409, 504)

_PATH = "/function/{name}"
TABLE: tuple[Route[Gateway], ...] = (
    Route("GET", "/api/functions", list_functions, summary="Functions"),
    Route(
        "POST",
        _PATH,
        invoke,
        summary="Evaluate a query",
        also=_STATUSES,
        errors=(404,),
        produces=(*_PRODUCES, EVENTS),
        streams=_is_stream,
        time_limit=inf,  # the evaluator has its own
        scope=Scope.READ,
    ),
    Route(
        "GET",
        _PATH,
        ask,
        summary="Evaluate a query in the address",
        also=_STATUSES,
        errors=(404,),
        produces=(*_PRODUCES, EVENTS, HTML),
        streams=_is_stream,
        time_limit=inf,
        open=_is_page,
        same_origin=True,
    ),
    Route(
        "PUT",
        _PATH,
        reserve,
        summary="Reserve an event stream",
        status=201,
        errors=(404, 503),
        produces=("text/plain",),
        scope=Scope.READ,
    ),
    Route(
        "DELETE",
        _PATH,
        stop,
        summary="End an operation of an event stream",
        errors=(404,),
        produces=("text/plain",),
        scope=Scope.READ,
    ),
)


def pages() -> Pages:
    """Return the page for writing queries, and its assets. It is also at `/`. Without a build there is a plain page."""
    if files("graphql_fn.http").joinpath("editor", "index.html").is_file():
        return Pages("graphql_fn.http", "editor")
    return Pages("graphql_fn.http", "page", prefix="/static/")
