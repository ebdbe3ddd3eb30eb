"""An answer that is complete when it is returned. It is sent in one piece, at a third of the cost of the framework's way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import METH_HEAD, ORIGIN, UPGRADE
from aiohttp.http import HttpVersion11

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

    def at(self, sequence: int) -> Reply:
        """Return the same answer for another position of the log."""
        same = Reply(self._code, self._given, self._content, sequence)
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
