"""The gateway: `/function/<name>` on the same edge as the other services."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from aiohttp import web

from graphql_fn.core.over_http import HTML, JSON, RESPONSE, HttpRequest, wants_page
from graphql_fn.core.over_sse import EVENTS, wants_stream
from graphql_fn.http.gateway import Gateway
from httpkit import Call, Nothing, Pages, Route, Scope, header, member, message, path, payload, query

_PRODUCES = (JSON, RESPONSE)
_MIN_SEQ = "Wait until the tables have this sequence of the log."


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


async def invoke(request: Post, call: Call[Gateway]) -> web.StreamResponse:
    """Evaluate the request in the body."""
    call.services.admit(request.name, call.caller)
    asked = _http_request(call, {}, request.body)
    if _is_stream(call.http):
        return await call.services.stream(request.name, asked, call.http)
    return await call.services.answer(request.name, asked, call.http)


async def ask(request: Get, call: Call[Gateway]) -> web.StreamResponse:
    """Evaluate the query in the parameters; mutations are refused. A browser gets a page to write queries on."""
    asked = _http_request(call, call.http.query)
    if _is_page(call.http):
        return await call.services.page(request.name, call.http)
    call.services.admit_query(call.http)
    call.services.admit(request.name, call.caller)
    if _is_stream(call.http):
        return await call.services.stream(request.name, asked, call.http)
    return await call.services.answer(request.name, asked, call.http)


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
    ),
)


def pages() -> Pages:
    """Return the page for writing queries, and its assets. It is also at `/`."""
    return Pages("graphql_fn.http", "editor", built=True)
