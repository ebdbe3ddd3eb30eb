"""The route table: the operations of a service, as values. Handlers, validation and the OpenAPI document are made of it.

    async def list_tasks(request: ListTasks, call: Call[Services]) -> Sequence[TaskView]: ...

    TABLE = (
        Route("GET", "/api/tasks", list_tasks, summary="Tasks", errors=(404,)),
    )

The request class and the class of the answer are the handler's own annotations, so that there is one place to change. Both have
to be importable names of the handler's module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

import attrs
from aiohttp import ETag, web
from aiohttp.hdrs import IF_MATCH

from eventlog.commit import Context
from httpkit.messages.fields import message
from httpkit.problems import PreconditionFailed


class Scope(StrEnum):
    """The rights of a token; each scope includes the scopes before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def covers(self, other: Scope) -> bool:
        """Return whether this scope includes another."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@attrs.frozen(kw_only=True)
class Caller:
    """The caller of a request.

    `actor` is its name in events. `realm` is the service that issued its token; None has no such limit. `session` is the id of
    a browser's session.
    """

    actor: str
    scope: Scope
    name: str = ""
    realm: str | None = None
    token: str | None = None
    session: str | None = None


LOCAL = Caller(actor="local", scope=Scope.ADMIN)
"""A program or a browser on this machine, which no token is asked of."""
ANYBODY = Caller(actor="anonymous", scope=Scope.ADMIN)
"""A client of a service that answers without tokens on an address other than loopback."""
OPEN = Caller(actor="anonymous", scope=Scope.READ)
"""A client of a route that asks for no token."""

CALLER: web.RequestKey[Caller] = web.RequestKey("caller", Caller)
"""The caller of a request, once it is admitted."""


class Access(Protocol):
    """Knows tokens and sessions. Each method may raise an error with status 503 if it cannot look them up."""

    async def by_token(self, text: str) -> Caller | None:
        """Return the holder of a token; None if the token is unknown, revoked or expired."""

    async def by_session(self, cookie: str) -> Caller | None:
        """Return the owner of a session's cookie; None if the session has ended, or its token."""

    async def open_session(self, caller: Caller) -> tuple[str, int]:
        """Open a session for the holder of a token. Return the value of its cookie, and its longest time in seconds."""

    async def close_session(self, cookie: str) -> None:
        """End the session of a cookie, if it is one."""

    def is_token(self, text: str) -> bool:
        """Return whether a text has the form of a token of this service."""


S = TypeVar("S")
T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@message
class Nothing:
    """A request without parameters and without a body."""


@attrs.frozen(kw_only=True)
class Call(Generic[S]):
    """The context of a handler's request.

    `services` is the object that the application was built with. `request_id` is the correlation id. `key` is the caller's
    Idempotency-Key, and `fingerprint` a digest of its request. `traceparent` is the span of the request (W3C Trace Context).
    `http` is the request of aiohttp, for streams. `caller` is the holder of its token.
    """

    services: S
    request_id: str
    http: web.Request
    key: str | None = None
    fingerprint: str | None = None
    traceparent: str | None = None
    caller: Caller = LOCAL

    @property
    def context(self) -> Context:
        """The context in which a command of the request is issued."""
        return Context(
            key=self.key,
            fingerprint=self.fingerprint,
            correlation=self.request_id,
            traceparent=self.traceparent,
            actor=self.caller.actor,
        )

    @property
    def if_match(self) -> Sequence[ETag] | None:
        """The entity tags of If-Match (RFC 9110, section 13.1.1), `*` among them; None without the header.

        A header of another form, such as a tag without quotes, has none: no version matches it.
        """
        return None if IF_MATCH not in self.http.headers else self.http.if_match or ()

    def require_match(self, current: str | None) -> None:
        """Compare If-Match with the present entity tag (None: the resource does not exist). Raises PreconditionFailed."""
        wanted = self.if_match
        if wanted is None:
            return
        if current is None or not any(tag.value in ("*", current) and not tag.is_weak for tag in wanted):
            raise PreconditionFailed(f"If-Match does not name the present version, which is {current!r}")


@attrs.frozen
class Answer(Generic[T]):
    """A value with the headers and the status of its answer.

    `status`, if it differs from the route's status (one of its `also`). `sequence` of the log for which the answer is true, if it
    is not the one of the moment at which the handler was called: every command gives the sequence that it wrote. `etag` without
    quotes. If If-None-Match names it, the answer is 304. `cursor` of the next page, for `Link: rel="next"`. `rows` of the CSV
    form, if the value itself is not the list of them. Rows that are encoded already, as `msgspec.Raw`, are written as they are.
    """

    value: T
    status: int | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    sequence: int | None = None
    etag: str | None = None
    cursor: str | None = None
    rows: Sequence[Any] | None = None


@attrs.frozen
class Route(Generic[S]):
    """One operation.

    `status` is the status of success (204 if the handler returns nothing), `also` other statuses of answers, `errors` the
    statuses of errors in addition to the errors of every route. `idempotent`: the operation takes an Idempotency-Key. `max_body`
    in bytes and `time_limit` in seconds override the edge's (infinity: the handler limits its time). A read that has one may ask
    other hosts, which takes long. So it is not called inside the edge's `moment`, and names the sequence of its answer itself.
    `open`: no token is needed, or none for requests for which the function is true. `scope` of the token that it needs: by
    default `read` for a method that changes no data, else `write`. `produces` are the media types of a handler that returns its
    own StreamResponse.
    `events` makes it an event stream: names of events and the classes of their data.
    `csv` is the class of the rows of a list that is also answered as CSV. `streams` is true for requests of an event stream, if
    the route also has other answers. Such a stream has no time limit and does not count as a request in flight.
    `immediate`: the handler is called even if the tables lack commands that this process has answered. It asks only the log, or
    shows how far the tables are. It names the sequence of its answer itself, or none.
    `kept`: the answer depends on nothing but the target and the tables, so it is given again while the tables are the same.
    """

    method: Method
    path: str
    handler: Callable[[Any, Call[S]], Awaitable[Any]]
    summary: str = attrs.field(kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    tags: Sequence[str] = attrs.field(default=(), kw_only=True)
    status: int = attrs.field(kw_only=True)
    also: Sequence[int] = attrs.field(default=(), kw_only=True)
    errors: Sequence[int] = attrs.field(default=(), kw_only=True)
    idempotent: bool = attrs.field(default=False, kw_only=True)
    max_body: int | None = attrs.field(default=None, kw_only=True)
    time_limit: float | None = attrs.field(default=None, kw_only=True)
    open: bool | Callable[[web.Request], bool] = attrs.field(default=False, kw_only=True)
    scope: Scope = attrs.field(kw_only=True)
    produces: Sequence[str] = attrs.field(default=(), kw_only=True)
    events: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True)
    streams: Callable[[web.Request], bool] | None = attrs.field(default=None, kw_only=True)
    csv: type | None = attrs.field(default=None, kw_only=True)
    immediate: bool = attrs.field(default=False, kw_only=True)
    kept: bool = attrs.field(default=False, kw_only=True)
    deprecated: bool = attrs.field(default=False, kw_only=True)

    @status.default
    def _status(self) -> int:
        return HTTPStatus.NO_CONTENT if self.answer_type is type(None) else HTTPStatus.OK

    @scope.default
    def _scope(self) -> Scope:
        return Scope.READ if self.method in SAFE else Scope.WRITE

    @property
    def request_type(self) -> type:
        """The class of the handler's first parameter."""
        first: type = next(iter(get_type_hints(self.handler).values()))
        return first

    @property
    def answer_type(self) -> Any:
        """The type of the value that the handler gives, inside an Answer or bare; a StreamResponse stands for itself."""
        hint = get_type_hints(self.handler)["return"]
        return get_args(hint)[0] if get_origin(hint) is Answer else hint

    @property
    def operation_id(self) -> str:
        """The name of the handler."""
        return getattr(self.handler, "__name__", type(self.handler).__name__).strip("_")

    @property
    def is_stream(self) -> bool:
        """Whether it answers with an event stream."""
        return self.events is not None
