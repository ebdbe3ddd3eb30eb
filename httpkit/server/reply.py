"""Replies: with a time limit, from kept bytes if the tables are unchanged, or in parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from typing import Self

import attrs
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import ACCEPT, IF_NONE_MATCH, METH_HEAD, ORIGIN, UPGRADE
from aiohttp.http import HttpVersion11

from eventlog.support.timers import TimerQueue
from httpkit.messages.csv_form import MEDIA_TYPE


class TimeoutPool:
    """Time limits of one length: `with deadlines.begin() as deadline:`."""

    def __init__(self, seconds: float) -> None:
        self._alarms = TimerQueue(seconds)

    def begin(self) -> Deadline:
        """One of them."""
        return Deadline(self._alarms)


class Deadline:
    """Raises TimeoutError where its block has not ended in time. Used once, inside a task."""

    __slots__ = ("_alarms", "_cancelling", "_number", "_task", "expired")

    def __init__(self, alarms: TimerQueue) -> None:
        self._alarms = alarms
        self.expired = False
        """Whether the time was up before the block ended."""

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._number = self._alarms.set(self._expire)
        return self

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._alarms.clear(self._number)
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error


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
    return IF_NONE_MATCH not in headers and MEDIA_TYPE not in headers.get(ACCEPT, "")


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
        self._given = headers
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
        same = Reply(self._code, self._given, self._content, max(sequence, self._sequence or 0))
        same._fixed = self._fixed
        return same

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
            if not "".join(self._given.values()).isprintable():
                return None
            headers = {**HEADERS, **self._given, "Content-Length": str(len(self._content))}
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
        super().__init__(status=self._code, headers={**self._given, **sequence}, body=self._content)
        return await super().prepare(request)


@lru_cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
