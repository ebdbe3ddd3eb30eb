"""One route made a handler of aiohttp: read, bind, call, answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from httpkit import body
from httpkit.binding import Binder
from httpkit.deadline import Deadline
from httpkit.edge import REQUEST_ID, Edge
from httpkit.encoding import encode
from httpkit.problems import AboutField, Busy, FieldError, Invalid, Mapped
from httpkit.routes import SAFE, Answer, Call, Route

S = TypeVar("S")

MIN_SEQ = "min_seq"
SEQUENCE_HEADER = "Event-Sequence"
KEY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"[\x21-\x7e]{1,255}"
_SEQUENCE = re.compile(r"[0-9]{1,18}")
_KEY = re.compile(KEY_PATTERN)
_TRACE = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class TimedOut(Busy):
    """The handler did not answer in time; a command may have taken effect, and repeating it with the same key is safe."""


class Operation(Generic[S]):
    """A route of one application, with its request class compiled. `handle` is the handler for aiohttp."""

    def __init__(self, route: Route[S], services: S, edge: Edge) -> None:
        self.route = route
        self.binder: Binder[Any] = Binder(route.request_type, invalid=edge.invalid, refuse_unknown=route.unknown == "refuse")
        self._services = services
        self._edge = edge
        self._empty = route.answer_type is type(None)
        self._statuses = {route.status, *route.also}
        self._max_body = route.max_body or edge.max_body
        self._time_limit = route.time_limit or edge.time_limit

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request. Raises what cannot be answered with a value; the middleware makes problems of it."""
        edge, binder = self._edge, self.binder
        if request.rel_url.raw_query_string and edge.wait_for is not None and request.method in SAFE:
            await self._wait(request, edge.wait_for)
        sequence = edge.position() if edge.position is not None else None
        given, raw = await self._read(request) if binder.takes_body else (None, b"")
        bound = binder.bind(request.match_info, request.query, request.headers, given, has_body=given is not None)
        result = await self._run(bound, self._call(request, raw))
        return self._answer(request, result, sequence)

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
        body.check_media(request, binder.media)
        raw = await body.read(request, limit=self._max_body, deadline=self._edge.body_deadline)
        if binder.takes_raw:
            assert binder.payload is not None
            return (raw if binder.payload.attribute.type is bytes else body.text(raw)), raw
        if not raw:
            return None, b""
        return body.parse(raw), raw

    def _call(self, request: web.Request, raw: bytes) -> Call[S]:
        headers = request.headers
        key = self._key(headers) if self.route.idempotent else None
        trace = headers.get("traceparent")
        return Call(
            services=self._services,
            request_id=request[REQUEST_ID],
            http=request,
            key=key,
            fingerprint=None if key is None else self._fingerprint(request, raw),
            traceparent=trace if trace is not None and _TRACE.fullmatch(trace) else None,
        )

    @staticmethod
    def _key(headers: Mapping[str, str]) -> str | None:
        given = headers.get(KEY_HEADER)
        if given is None:
            return None
        key = given[1:-1] if len(given) > 1 and given[0] == given[-1] == '"' else given
        if not _KEY.fullmatch(key):
            raise Invalid([FieldError("must be 1 to 255 printable ASCII characters without spaces", parameter=KEY_HEADER)])
        return key

    def _fingerprint(self, request: web.Request, raw: bytes) -> str:
        """What an idempotency key stands for: method, path, query and the body, whatever order its members are in."""
        content = raw if self.binder.takes_raw or not raw else msgspec.json.encode(body.parse(raw), order="deterministic")
        head = f"{request.method} {request.rel_url.raw_path_qs}\n".encode()
        return hashlib.sha256(head + content).hexdigest()

    async def _run(self, bound: Any, call: Call[S]) -> Any:
        if self.route.is_stream:
            return await self.route.handler(bound, call)
        limit = Deadline(self._time_limit)
        try:
            with limit:
                return await self.route.handler(bound, call)
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise TimedOut(f"no answer within {self._time_limit:g} s") from error
        except Exception as error:
            if isinstance(error, AboutField) and isinstance(error, Mapped):
                raise Invalid([self.binder.field_error(error.field, error.reason)], HTTPStatus(error.status)) from error
            raise

    def _answer(self, request: web.Request, result: Any, before: int | None) -> web.StreamResponse:
        if isinstance(result, web.StreamResponse):
            return result
        answer = result if isinstance(result, Answer) else Answer(result)
        status = answer.status or self.route.status
        if status not in self._statuses:
            raise RuntimeError(f"{self.route.operation_id} answered {status}, which its route does not name")
        headers = dict(answer.headers)
        sequence = before if answer.sequence is None else answer.sequence
        if sequence is not None:
            headers[SEQUENCE_HEADER] = str(sequence)
        if answer.cursor is not None:
            following = request.rel_url.update_query(cursor=answer.cursor)
            headers["Link"] = f'<{following.raw_path_qs}>; rel="next"'
        if answer.etag is not None:
            headers["ETag"] = f'"{answer.etag}"'
            headers.setdefault("Cache-Control", "no-cache")
            if request.method in SAFE and _has_it(request, answer.etag):
                return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        if self._empty:
            return web.Response(status=status, headers=headers)
        return web.Response(body=encode(answer.value), status=status, headers=headers, content_type="application/json")


def _has_it(request: web.Request, etag: str) -> bool:
    return any(tag.value in ("*", etag) for tag in request.if_none_match or ())
