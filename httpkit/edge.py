"""The pipeline of every request: id and trace, guards, the cap on concurrency, errors as problems, a log line, metrics."""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, NoReturn

import attrs
import structlog
from aiohttp import web
from aiohttp.hdrs import SERVER
from multidict import istr

from eventlog.support import tracing
from eventlog.support.tracing import Trace
from httpkit.errors import HttpkitError
from httpkit.messages.body import ClientGone
from httpkit.ops.metrics import Metrics
from httpkit.problems import Busy, Problems
from httpkit.server.callers import CALLER, Caller, Scope
from httpkit.server.guard import Guard, ends_with_its_token
from httpkit.server.reply import HEADERS, REQUEST_ID, REQUEST_ID_HEADER, SERVER_TIMING_HEADER, TRACEPARENT, KeptAnswers

log = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CLIENT_CLOSED = 499
_PROCESS = secrets.token_hex(6)
_COUNTER = itertools.count(1)

# Names that a multidict need not fold at each look (https://multidict.aio-libs.org, istr).
_REQUEST_ID_HEADER = istr(REQUEST_ID_HEADER)
_TRACEPARENT_HEADER = istr("traceparent")
_SERVER_TIMING = istr(SERVER_TIMING_HEADER)
_HEADERS = tuple((istr(name), value) for name, value in HEADERS.items())


@attrs.frozen(kw_only=True)
class Edge:
    """Settings of the edge of one service.

    `error_key` is the member that has the text of an error; `invalid` the status if a body can be read and cannot be
    right. Limits: `max_body` in bytes, `body_deadline` and `time_limit` (of a handler) in seconds, `max_in_flight` requests at a
    time, streams and probes not counted. `examples` are answers for the document, by the names of handlers. `moment` is the
    block in which the handler of a read is called, unless its route sets a time limit or is immediate.
    Its queries see one moment of the tables, and the answer names the sequence of that moment. `wait_for` waits until the read
    model has reached a sequence. It raises an error with status 503 if that takes too long, and 409 if the log has no such
    sequence. `unseen` gives what is awaited before a handler asks the tables, None if they have every command that this process
    has answered. `written` is awaited before the answer to a command, with its sequence and whether the route is immediate: the
    answer follows once reads show what was written. `kept` keeps the answers of routes that are marked so.

    For clients of other programs: media types in `also_json` count as JSON, and `trailing_slash` serves each path of the table
    with a slash at its end as well.
    """

    title: str
    version: str
    description: str | None = None
    error_key: str = "message"
    invalid: HTTPStatus = HTTPStatus.BAD_REQUEST
    guard: Guard = attrs.field(factory=Guard)
    metrics: Metrics = attrs.field(factory=Metrics)
    max_body: int = 1024**2
    body_deadline: float = 15.0
    time_limit: float = 30.0
    max_in_flight: int = 256
    examples: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    moment: Callable[[], AbstractAsyncContextManager[int]] | None = None
    wait_for: Callable[[int], Awaitable[object]] | None = None
    unseen: Callable[[], Awaitable[object] | None] | None = None
    written: Callable[[int, bool], Awaitable[object]] | None = None
    kept: KeptAnswers | None = None
    openapi_path: str = "/api/openapi.json"
    metrics_path: str = "/metrics"
    session_path: str = "/api/session"
    also_json: frozenset[str] = frozenset()
    trailing_slash: bool = False

    @property
    def problems(self) -> Problems:
        """How errors are shown."""
        return Problems(self.error_key)


@attrs.frozen(kw_only=True)
class EdgePolicy:
    """How requests for one handler are treated: `open` without a token, `capped` by max_in_flight, `quiet` in the log.

    `open` may be a function of the request. `same_origin`: pages of other origins are refused, also for a method that changes
    nothing, unless the request is open. `scope` is the scope that a token needs. `streams` tells of a request whether it
    asks for an event stream, which is not capped. `kept`: answers are given again while the tables are the same.
    """

    open: bool | Callable[[web.Request], bool] = False
    same_origin: bool = False
    capped: bool = True
    quiet: bool = False
    streams: Callable[[web.Request], bool] | None = None
    scope: Scope = Scope.READ
    kept: bool = False


class Pipeline:
    """The pipeline before all handlers of one application."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        self.problems = edge.problems
        self.in_flight = 0
        self.log = log.bind()  # once: an unbound logger is bound at each call
        edge.metrics.in_flight.set_function(lambda: self.in_flight)

    def before(self, handler: Handler, policy: EdgePolicy, template: str) -> Handler:
        """The handler as it is registered; `template` is its path, for the metrics."""
        guarded = _Guarded(self, handler, policy, template)
        kept = self.edge.kept
        return guarded.handle if kept is None or not policy.kept else guarded.keeping(kept)


class _Guarded:
    """A handler with its pipeline. It replaces a middleware, which is put before the handler at each request."""

    def __init__(self, entrance: Pipeline, handler: Handler, policy: EdgePolicy, template: str) -> None:
        self._entrance = entrance
        self._edge = entrance.edge
        self._problems = entrance.problems
        self._handler = handler
        self._policy = policy
        self._stream = attrs.evolve(policy, capped=False, streams=None)
        self._template = template

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        return await self._run(request, self._handler)

    def keeping(self, kept: KeptAnswers) -> Handler:
        """Return `handle` with its answers kept."""

        async def handle(request: web.Request) -> web.StreamResponse:
            before = kept.state()
            response = await self._run(request, self._handler)
            kept.keep(request, response, before, self._run)
            return response

        return handle

    async def _run(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        request_id = _request_id(request)
        request[REQUEST_ID] = request_id
        trace = _trace(request)
        request[TRACEPARENT] = str(trace)
        structlog.contextvars.bind_contextvars(request_id=request_id, trace_id=trace.trace_id)
        policy = self._policy
        if policy.streams is not None and policy.streams(request):
            policy = self._stream
        self._entrance.in_flight += policy.capped
        status = _CLIENT_CLOSED
        try:
            request[CALLER] = caller = await self._admit(request, policy)
            if caller.token is not None and not policy.capped:
                with ends_with_its_token(request, self._edge.guard):
                    response = await handler(request)
            else:
                response = await handler(request)
            status = response.status
        except web.HTTPException as error:
            status = error.status
            if status < HTTPStatus.BAD_REQUEST:
                raise
            response = self._problems.of(error, instance=request.rel_url.raw_path, request_id=request_id)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001 - only here does an exception become an answer
            response = self._refuse(request, error, request_id)
            status = response.status
        finally:
            self._entrance.in_flight -= policy.capped
            self._record(request, status, time.perf_counter() - started, policy)
            if tracing.recording_spans() and policy.capped and not policy.quiet:
                self._export(request, trace, status, time.perf_counter() - started)
        return response

    def _export(self, request: web.Request, trace: Trace, status: int, seconds: float) -> None:
        """Export the span of a request, as https://opentelemetry.io/docs/specs/semconv/http/http-spans/ names it."""
        tracing.record_span(
            f"{request.method} {self._template}",
            trace,
            tracing.SpanKind.SERVER,
            time.time_ns() - int(seconds * 1e9),
            parent=Trace.parse(request.headers.get(_TRACEPARENT_HEADER)),
            attributes={
                "http.request.method": request.method,
                "http.route": self._template,
                "http.response.status_code": status,
            },
            failed=f"status {status}" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else None,
        )

    async def _admit(self, request: web.Request, policy: EdgePolicy) -> Caller:
        try:
            guard = self._edge.guard
            is_open = policy.open if isinstance(policy.open, bool) else policy.open(request)
            guard.check(request, same_origin=policy.same_origin and not is_open)
            caller = await guard.identify(request, policy.scope, is_open=is_open)
            if policy.capped and self._entrance.in_flight > self._edge.max_in_flight:
                raise Busy(f"more than {self._edge.max_in_flight} requests are being answered; try again")
        except HttpkitError as error:
            self._edge.metrics.refused.labels(type(error).__name__).inc()
            raise
        return caller

    def _refuse(self, request: web.Request, error: Exception, request_id: str) -> web.StreamResponse:
        if request.writer.output_size > 0:
            _cut(request, error)
        response = self._problems.of(error, instance=request.rel_url.raw_path, request_id=request_id)
        if response.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("request failed", method=request.method, path=request.rel_url.raw_path, exc_info=error)
        return response

    def _record(self, request: web.Request, status: int, seconds: float, policy: EdgePolicy) -> None:
        self._edge.metrics.observe(request.method, self._template, status, seconds if policy.capped else None)
        level = logging.DEBUG if policy.quiet else logging.INFO
        if not self._entrance.log.is_enabled_for(level):
            return
        self._entrance.log.log(
            level,
            "request",
            method=request.method,
            path=request.rel_url.raw_path,
            status=status,
            duration_ms=round(seconds * 1000, 3),
            remote=self._edge.guard.proxies.client(request),
        )


def _cut(request: web.Request, error: Exception) -> NoReturn:
    """The answer has begun and cannot be completed: the client must not take it for whole."""
    log.error("answer cut off", method=request.method, path=request.rel_url.raw_path, exc_info=error)
    if request.transport is not None:
        request.transport.abort()
    raise ClientGone("the answer had begun") from error


def _request_id(request: web.Request) -> str:
    given = request.headers.get(_REQUEST_ID_HEADER)
    return given if given is not None and _ID.fullmatch(given) else f"{_PROCESS}-{next(_COUNTER):x}"


def _trace(request: web.Request) -> Trace:
    trace = None
    if _TRACEPARENT_HEADER in request.headers:
        given = request.headers.getall(_TRACEPARENT_HEADER)
        trace = Trace.parse(given[0]) if len(given) == 1 else None
    return Trace.begin() if trace is None else trace.child()


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Signal on_response_prepare: the headers that every answer has, unless it sets them itself.

    They do not name the software or its version.
    """
    headers = response.headers
    headers.popall(SERVER, None)
    for name, value in _HEADERS:
        if name not in headers:
            headers[name] = value
    request_id = request.get(REQUEST_ID)
    if request_id is not None:
        headers[_REQUEST_ID_HEADER] = request_id
    traceparent = request.get(TRACEPARENT)
    if traceparent is not None:
        headers[_SERVER_TIMING] = f'traceparent;desc="{traceparent}"'
