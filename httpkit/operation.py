"""One route made a handler of aiohttp: read, bind, call, answer."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from math import inf
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web
from aiohttp.hdrs import ACCEPT, CACHE_CONTROL, VARY
from multidict import MultiDict, MultiDictProxy, MultiMapping, istr

from httpkit.edge import Edge
from httpkit.errors import FieldError
from httpkit.messages import body, csv_form
from httpkit.messages.binding import Binder
from httpkit.messages.encoding import encode
from httpkit.messages.fields import Source
from httpkit.problems import AboutField, Busy, Invalid, status_of
from httpkit.routes import SAFE, Answer, Call, Route
from httpkit.server.callers import CALLER
from httpkit.server.reply import REQUEST_ID, SEQUENCE_HEADER, TRACEPARENT, Reply, TimeoutPool

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
            refuse_unknown=route.unknown == "refuse",
            resumes=route.is_stream,
        )
        self._services = services
        self._edge = edge
        self._empty = route.answer_type is type(None)
        self._statuses = {route.status, *route.also}
        self._max_body = route.max_body or edge.max_body
        self._time_limit = route.time_limit or edge.time_limit
        takes_long = route.time_limit is not None  # a database has too few connections for that
        self._moment = None if route.method not in SAFE or route.immediate or takes_long else edge.moment
        self._written = None if route.method in SAFE else edge.written
        self._deadlines = TimeoutPool(self._time_limit)
        for field in self.binder.fields:
            if field.source is Source.PATH and f"{{{field.name}}}" not in route.path:
                name = self.binder.cls.__name__
                raise ValueError(f"{route.method} {route.path}: the path lacks the parameter {field.name} of {name}")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request. Raises what cannot be answered with a value; the middleware makes problems of it."""
        edge, binder = self._edge, self.binder
        if request.rel_url.raw_query_string and edge.wait_for is not None and request.method in SAFE:
            await self._wait(request, edge.wait_for)
        if edge.unseen is not None and not self.route.immediate and (reached := edge.unseen()) is not None:
            await reached
        given, raw = await self._read(request) if binder.takes_body else (None, b"")
        query = request.query if request.rel_url.raw_query_string else _NONE
        bound = binder.bind(request.match_info, query, request.headers, given, has_body=bool(raw))
        result, sequence = await self._run(bound, self._call(request, raw))
        return await self._answer(request, result, sequence)

    @staticmethod
    async def _wait(request: web.Request, wait_for: Callable[[int], Awaitable[object]]) -> None:
        text = request.query.get(MIN_SEQ)
        if text is None:
            return
        if not _SEQUENCE.fullmatch(text):
            raise Invalid([FieldError("must be a sequence number", parameter=MIN_SEQ)])
        await wait_for(int(text))

    async def _read(self, request: web.Request) -> tuple[Any, bytes]:
        """The body as the binder takes it (None: there is none), and the bytes that an idempotency key stands for."""
        binder = self.binder
        if request.body_exists:  # clients name a type also if they send nothing
            body.check_media(request, binder.media, also_json=self._edge.also_json)
        raw = await body.read(request, limit=self._max_body, deadline=self._edge.body_deadline)
        if binder.takes_raw:
            assert binder.payload is not None
            return (raw if binder.payload.attribute.type is bytes else body.body_text(raw)), raw
        if not raw:
            return None, b""
        return body.parse_body(raw), raw

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
        given = body.parse_body(raw)
        if not self.binder.personal or not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in self.binder.personal}

    async def _run(self, bound: Any, call: Call[S]) -> tuple[Any, int | None]:
        """The result of the handler, and the sequence of the moment at which it read, if it was called inside of one."""
        streams = self.route.streams
        if self.route.is_stream or (streams is not None and streams(call.http)) or self._time_limit == inf:
            return await self.route.handler(bound, call), None
        limit = self._deadlines.begin()
        try:
            with limit:
                if self._moment is None:
                    return await self.route.handler(bound, call), None
                async with self._moment() as sequence:
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
        if answer.sequence is not None and self._written is not None:
            await self._written(answer.sequence, self.route.immediate)
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
            if csv_form.is_wanted(request.headers.get(ACCEPT)):
                media, form = f"{csv_form.MEDIA_TYPE}; charset=utf-8", partial(csv_form.encode_csv, row, rows)
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
