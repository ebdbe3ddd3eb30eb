"""Answers of reads that are kept as they were encoded, and given again while the tables are the same.

A kept answer is found by the target of its request, before the target is resolved to a route. It is as true as a new one: it is
given only if the tables are in the state that the answer was made from, and it names the position that they have now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import attrs
from aiohttp import web
from aiohttp.hdrs import ACCEPT, IF_NONE_MATCH

from httpkit.messages.csv_form import MEDIA_TYPE
from httpkit.server.reply import Reply

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
                return kept.reply.at(position)

            return await kept.run(request, again)

        return answer


def _is_plain(request: web.Request) -> bool:
    """Whether the answer is a body that depends on nothing but the target and the tables."""
    if request.method != "GET" or "?" in request.raw_path:
        return False
    headers = request.headers
    return IF_NONE_MATCH not in headers and MEDIA_TYPE not in headers.get(ACCEPT, "")
