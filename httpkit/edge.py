"""The edge: the pipeline of every request, with guards, errors, log and metrics, and the operations of the route table in it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from math import inf
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import attrs
import msgspec
import structlog
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import ACCEPT, CACHE_CONTROL, IF_NONE_MATCH, METH_HEAD, ORIGIN, SERVER, UPGRADE, VARY
from aiohttp.http import HttpVersion11
from multidict import MultiDict, MultiDictProxy, MultiMapping, istr

from eventlog.support import tracing
from eventlog.support.timers import TimerQueue
from eventlog.support.tracing import Trace
from httpkit.errors import FieldError, HttpkitError
from httpkit.messages.binding import Binder, ClientGone, body_text, check_media, parse_body, read_body
from httpkit.messages.encoding import CSV_MEDIA, encode, encode_csv, wants_csv
from httpkit.messages.fields import Source
from httpkit.monitoring import Metrics
from httpkit.problems import AboutField, Busy, Invalid, Problems, status_of
from httpkit.routes import CALLER, SAFE, Answer, Call, Caller, Route, Scope
from httpkit.server.guard import Guard, ends_with_its_token

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Run = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]
"""Answers a request by a handler, behind the checks of a route."""

MOST_BYTES = 32 * 1024**2
"""Bytes of the bodies that are kept together."""
_OVERHEAD = 1000
"""About the bytes that an entry takes in addition to its body."""


@attrs.frozen
class _Kept:
    reply: Reply
    run: Run


class KeptAnswers:
    """The answers of one application, all of them made from one state of the tables.

    `state` names the state of all tables: no row changed between two calls with equal results. It returns None if the state is
    not known, and no answer is kept. `position` is the position of the log that the tables have reached.
    """

    def __init__(self, state: Callable[[], object], position: Callable[[], int], *, most_bytes: int = MOST_BYTES) -> None:
        self.state = state
        self._position = position
        self._most_bytes = most_bytes
        self._of: object = None
        self._bytes = 0
        self._answers: dict[str, _Kept] = {}

    def keep(self, request: web.Request, response: web.StreamResponse, before: object, run: Run) -> None:
        """Keep the answer to a request, if the tables are still in the state `before`, from when the handler was called."""
        if not isinstance(response, Reply) or response.status != HTTPStatus.OK or not _is_plain(request):
            return
        if before is None or self.state() != before:
            return
        size = len(response.content) + _OVERHEAD
        if before != self._of or self._bytes + size > self._most_bytes:
            self._answers, self._bytes, self._of = {}, 0, before
        if size <= self._most_bytes and request.raw_path not in self._answers:
            self._answers[request.raw_path] = _Kept(response, run)
            self._bytes += size

    def before(self, handler: Handler) -> Handler:
        """Return a handler of all requests. It gives a kept answer, or leaves the request to `handler`."""

        async def answer(request: web.Request) -> web.StreamResponse:
            kept = self._answers.get(request.raw_path)
            if kept is None or not _is_plain(request):
                return await handler(request)
            position = self._position()  # before the state: the tables have this position or a later one
            if self.state() != self._of:
                return await handler(request)

            async def again(_: web.Request) -> Reply:
                return kept.reply.at_least(position)

            return await kept.run(request, again)

        return answer


def _is_plain(request: web.Request) -> bool:
    """Whether the answer is a body that depends on nothing but the target and the tables."""
    if request.method != "GET" or "?" in request.raw_path:
        return False
    headers = request.headers
    return IF_NONE_MATCH not in headers and CSV_MEDIA not in headers.get(ACCEPT, "")


REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
TRACEPARENT: web.RequestKey[str] = web.RequestKey("traceparent", str)
"""The span of the request: of the trace that the client named, or of a new one."""
SEQUENCE_HEADER = "Event-Sequence"
REQUEST_ID_HEADER = "X-Request-Id"
SERVER_TIMING_HEADER = "Server-Timing"
HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""Headers of every answer that does not set them itself."""


class Reply(web.Response):
    """An answer with a body. The names of its headers are written as in HEADERS.

    Rare cases (HEAD, HTTP/1.0, a connection that ends with the answer) are left to the framework, as for any other response.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, sequence: int | None = None) -> None:
        """`sequence`: the position of the log for which the answer is true, if it is known."""
        # A response of the framework is made of it only if it is needed, in `prepare`.
        self._code = status
        self._own_headers = headers
        self._content = body
        self._sequence = sequence
        self._fixed: str | None = None
        self._sent = False

    @property
    def status(self) -> int:
        """The status."""
        return self._code

    @property
    def content(self) -> bytes:
        """The body."""
        return self._content

    def at_least(self, sequence: int) -> Reply:
        """Return the same answer for its position of the log, or for this one if that is later."""
        reply = Reply(self._code, self._own_headers, self._content, max(sequence, self._sequence or 0))
        reply._fixed = self._fixed
        return reply

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays open after it."""
        return True if self._sent else super().keep_alive

    def wire(self, request: web.BaseRequest) -> bytes | None:
        """All of it as it goes over the wire; None where the framework has to look after it."""
        if (
            request.version != HttpVersion11
            or not request.keep_alive
            or request.method == METH_HEAD
            or UPGRADE in request.headers
            or ORIGIN in request.headers  # of a page, perhaps of another origin
        ):
            return None
        if self._fixed is None:
            if not "".join(self._own_headers.values()).isprintable():
                return None
            headers = {**HEADERS, **self._own_headers, "Content-Length": str(len(self._content))}
            self._fixed = _status_line(self._code) + "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        self._sent = True
        sequence = "" if self._sequence is None else f"{SEQUENCE_HEADER}: {self._sequence}\r\n"
        text = (
            f"{self._fixed}{sequence}Date: {_date(int(time.time()))}\r\n{REQUEST_ID_HEADER}: {request[REQUEST_ID]}\r\n"
            f'{SERVER_TIMING_HEADER}: traceparent;desc="{request[TRACEPARENT]}"\r\n\r\n'
        )
        return text.encode() + self._content

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Begin to send it, the framework's way."""
        sequence = {} if self._sequence is None else {SEQUENCE_HEADER: str(self._sequence)}
        super().__init__(status=self._code, headers={**self._own_headers, **sequence}, body=self._content)
        return await super().prepare(request)


@lru_cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


log = structlog.get_logger(__name__)


_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CLIENT_CLOSED = 499
_PROCESS = secrets.token_hex(6)
_COUNTER = itertools.count(1)

# Names that a multidict need not fold at each look (https://multidict.aio-libs.org, istr).
_REQUEST_ID_HEADER = istr(REQUEST_ID_HEADER)
_TRACEPARENT_HEADER = istr("traceparent")
_SERVER_TIMING = istr(SERVER_TIMING_HEADER)
_HEADERS = tuple((istr(name), value) for name, value in HEADERS.items())


READ_YOUR_WRITES = 5.0
"""Seconds for which an answer waits for the tables."""


class Tables(Protocol):
    """The tables that handlers ask, which follow the log."""

    def moment(self) -> AbstractAsyncContextManager[int]:
        """Return a block whose queries see one moment of the tables. It gets the sequence of that moment, for the answer.

        The handler of a read is called inside of one, unless its route sets a time limit or is immediate.
        """

    async def wait_for(self, sequence: int, seconds: float) -> None:
        """Return when the tables have a sequence that a client names.

        Raises an error with status 503 after that time, and 409 if the log has no such sequence.
        """

    async def acknowledge(self, sequence: int, *, immediate: bool) -> None:
        """Note a command that is answered next, and return once the answer may be sent; `immediate` as its route is."""

    async def include_acknowledged(self) -> None:
        """Return once the tables have each command that this process has answered. Awaited before a handler asks them."""


@attrs.frozen(kw_only=True)
class Edge:
    """Settings of the edge of one service.

    `error_key` is the member that has the text of an error; `invalid` the status if a body can be read and cannot be
    right. Limits: `max_body` in bytes, `body_deadline` and `time_limit` (of a handler) in seconds, `max_in_flight` requests at a
    time, streams and probes not counted. `examples` are answers for the document, by the names of handlers. `tables` are what
    reads show. `kept` keeps the answers of routes that are marked so.
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
    tables: Tables | None = None
    kept: KeptAnswers | None = None
    session_path: str = "/api/session"

    @property
    def problems(self) -> Problems:
        """How errors are shown."""
        return Problems(self.error_key)


@attrs.frozen(kw_only=True)
class EdgePolicy:
    """How requests for one handler are treated: `open` without a token, `capped` by max_in_flight, `quiet` in the log.

    `open` may be a function of the request. `scope` is the scope that a token needs. `streams` tells of a request whether it asks
    for an event stream, which is not capped. `kept`: answers are given again while the tables are the same.
    """

    open: bool | Callable[[web.Request], bool] = False
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

    def __init__(self, pipeline: Pipeline, handler: Handler, policy: EdgePolicy, template: str) -> None:
        self._pipeline = pipeline
        self._edge = pipeline.edge
        self._problems = pipeline.problems
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
        self._pipeline.in_flight += policy.capped
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
            self._pipeline.in_flight -= policy.capped
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
            guard.check(request)
            caller = await guard.identify(request, policy.scope, is_open=is_open)
            if policy.capped and self._pipeline.in_flight > self._edge.max_in_flight:
                raise Busy(f"more than {self._edge.max_in_flight} requests are being answered; try again")
        except HttpkitError as error:
            self._edge.metrics.refused.labels(type(error).__name__).inc()
            raise
        return caller

    def _refuse(self, request: web.Request, error: Exception, request_id: str) -> web.StreamResponse:
        if request.writer.output_size > 0:
            _cut(request, error)
        response = self._problems.of(error, instance=request.rel_url.raw_path, request_id=request_id)
        if response.status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.NOT_IMPLEMENTED):
            log.error("request failed", method=request.method, path=request.rel_url.raw_path, exc_info=error)
        return response

    def _record(self, request: web.Request, status: int, seconds: float, policy: EdgePolicy) -> None:
        self._edge.metrics.observe(request.method, self._template, status, seconds if policy.capped else None)
        level = logging.DEBUG if policy.quiet else logging.INFO
        if not self._pipeline.log.is_enabled_for(level):
            return
        self._pipeline.log.log(
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


S = TypeVar("S")

MIN_SEQ = "min_seq"
KEY_HEADER = "Idempotency-Key"
_SHORT = 200
"""Rows of an answer that are encoded in the event loop itself."""
KEY_PATTERN = r"[\x21-\x7e]{1,255}"
_FOLDED_KEY = istr(KEY_HEADER)
_NONE: MultiMapping[str] = MultiDictProxy(MultiDict())
_SEQUENCE = re.compile(r"[0-9]{1,18}")
_KEY = re.compile(KEY_PATTERN)


class TimedOut(Busy):
    """The handler did not answer in time. A command may have taken effect, and may be repeated with its key."""


class Operation(Generic[S]):
    """A route of one application, with its request class compiled. `handle` is the handler for aiohttp."""

    def __init__(self, route: Route[S], services: S, edge: Edge) -> None:
        """Raises ValueError for a request class that does not fit the route."""
        self.route = route
        self.binder: Binder[Any] = Binder(
            route.request_type,
            invalid=edge.invalid,
            resumes=route.is_stream,
        )
        self._services = services
        self._edge = edge
        self._empty = route.answer_type is type(None)
        self._statuses = {route.status, *route.also}
        self._max_body = route.max_body or edge.max_body
        self._time_limit = route.time_limit or edge.time_limit
        takes_long = route.time_limit is not None  # a database has too few connections for that
        self._is_read = route.method in SAFE
        self._has_moment = edge.tables is not None and self._is_read and not route.immediate and not takes_long
        self._limits = TimerQueue(self._time_limit)
        for field in self.binder.fields:
            if field.source is Source.PATH and f"{{{field.name}}}" not in route.path:
                name = self.binder.cls.__name__
                raise ValueError(f"{route.method} {route.path}: the path lacks the parameter {field.name} of {name}")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request. Raises what cannot be answered with a value; the middleware makes problems of it."""
        binder = self.binder
        if (tables := self._edge.tables) is not None:
            if self._is_read and request.rel_url.raw_query_string:
                await self._wait(request, tables)
            if not self.route.immediate:
                await tables.include_acknowledged()
        given, raw = await self._read(request) if binder.takes_body else (None, b"")
        query = request.query if request.rel_url.raw_query_string else _NONE
        bound = binder.bind(request.match_info, query, request.headers, given, has_body=bool(raw))
        result, sequence = await self._run(bound, self._call(request, raw))
        return await self._answer(request, result, sequence)

    @staticmethod
    async def _wait(request: web.Request, tables: Tables) -> None:
        text = request.query.get(MIN_SEQ)
        if text is None:
            return
        if not _SEQUENCE.fullmatch(text):
            raise Invalid([FieldError("must be a sequence number", parameter=MIN_SEQ)])
        await tables.wait_for(int(text), READ_YOUR_WRITES)

    async def _read(self, request: web.Request) -> tuple[Any, bytes]:
        """The body as the binder takes it (None: there is none), and the bytes that an idempotency key stands for."""
        binder = self.binder
        if request.body_exists:  # clients name a type also if they send nothing
            check_media(request, binder.media)
        raw = await read_body(request, limit=self._max_body, deadline=self._edge.body_deadline)
        if binder.takes_raw:
            assert binder.payload is not None
            return (raw if binder.payload.attribute.type is bytes else body_text(raw)), raw
        if not raw:
            return None, b""
        return parse_body(raw), raw

    def _call(self, request: web.Request, raw: bytes) -> Call[S]:
        headers = request.headers
        key = self._key(headers) if self.route.idempotent else None
        return Call(
            services=self._services,
            request_id=request[REQUEST_ID],
            http=request,
            key=key,
            fingerprint=None if key is None else self._fingerprint(request, raw),
            traceparent=request[TRACEPARENT],
            caller=request[CALLER],
        )

    @staticmethod
    def _key(headers: Mapping[str, str]) -> str | None:
        given = headers.get(_FOLDED_KEY)
        if given is None:
            return None
        key = given[1:-1] if len(given) > 1 and given[0] == given[-1] == '"' else given
        if not _KEY.fullmatch(key):
            raise Invalid([FieldError("must be 1 to 255 printable ASCII characters without spaces", parameter=KEY_HEADER)])
        return key

    def _fingerprint(self, request: web.Request, raw: bytes) -> str:
        """Return the digest input of an idempotency key: method, path, query and the body, with any order of its members.

        Personal members are left out, because the digest is kept for ever.
        """
        content = raw if self.binder.takes_raw or not raw else msgspec.json.encode(self._lasting(raw), order="deterministic")
        head = f"{request.method} {request.rel_url.raw_path_qs}\n".encode()
        return hashlib.sha256(head + content).hexdigest()

    def _lasting(self, raw: bytes) -> Any:
        given = parse_body(raw)
        if not self.binder.personal or not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in self.binder.personal}

    async def _run(self, bound: Any, call: Call[S]) -> tuple[Any, int | None]:
        """The result of the handler, and the sequence of the moment at which it read, if it was called inside of one."""
        streams = self.route.streams
        if self.route.is_stream or (streams is not None and streams(call.http)) or self._time_limit == inf:
            return await self.route.handler(bound, call), None
        limit, tables = self._limits.limit(), self._edge.tables
        try:
            with limit:
                if tables is None or not self._has_moment:
                    return await self.route.handler(bound, call), None
                async with tables.moment() as sequence:
                    return await self.route.handler(bound, call), sequence
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise TimedOut(f"no answer within {self._time_limit:g} s") from error
        except Exception as error:
            if isinstance(error, AboutField) and (status := status_of(error)) is not None:
                raise Invalid([self.binder.field_error(error.field, error.reason)], status) from error
            raise

    async def _answer(self, request: web.Request, result: Any, moment: int | None) -> web.StreamResponse:
        if isinstance(result, web.StreamResponse):
            return result
        answer = result if isinstance(result, Answer) else Answer(result)
        status = answer.status or self.route.status
        if status not in self._statuses:
            raise RuntimeError(f"{self.route.operation_id} answered {status}, which its route does not name")
        if answer.sequence is not None and not self._is_read and self._edge.tables is not None:
            await self._edge.tables.acknowledge(answer.sequence, immediate=self.route.immediate)
        headers = dict(answer.headers)
        sequence = moment if answer.sequence is None else answer.sequence
        if answer.cursor is not None:
            following = request.rel_url.update_query(cursor=answer.cursor)
            headers["Link"] = f'<{following.raw_path_qs}>; rel="next"'
        if answer.etag is not None:
            headers["ETag"] = f'"{answer.etag}"'
            headers.setdefault(CACHE_CONTROL, "no-cache")
            if request.method in SAFE and _has_it(request, answer.etag):
                return _without_body(HTTPStatus.NOT_MODIFIED, headers, sequence)
        if self._empty:
            return _without_body(status, headers, sequence)
        return await self._with_body(request, answer, status, headers, sequence)

    async def _with_body(
        self, request: web.Request, answer: Answer[Any], status: int, headers: dict[str, str], sequence: int | None
    ) -> web.Response:
        row, rows = self.route.csv, answer.value if answer.rows is None else answer.rows
        media, form = "application/json", partial(encode, answer.value)
        if row is not None:
            headers[VARY] = "Accept"
            if wants_csv(request.headers.get(ACCEPT)):
                media, form = f"{CSV_MEDIA}; charset=utf-8", partial(encode_csv, row, rows)
        # A thread takes longer to wake than a short answer to write; a long one would hold up everybody else.
        is_long = isinstance(rows, msgspec.Raw) or (isinstance(rows, list) and len(rows) > _SHORT)
        body = await asyncio.to_thread(form) if is_long else form()
        headers["Content-Type"] = media
        return Reply(status, headers, body, sequence)


def _without_body(status: int, headers: dict[str, str], sequence: int | None) -> web.Response:
    if sequence is not None:
        headers[SEQUENCE_HEADER] = str(sequence)
    return web.Response(status=status, headers=headers)


def _has_it(request: web.Request, etag: str) -> bool:
    return any(tag.value in ("*", etag) for tag in request.if_none_match or ())
