"""Beginning the answer to a client that follows events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web
from aiohttp.http import StreamWriter
from aiohttp_sse import EventSourceResponse

from httpkit.messages.body import ClientGone
from httpkit.problems import Busy

_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform"}


class BeatingResponse(EventSourceResponse):
    """An event stream with an event `heartbeat` in place of the comment, which an EventSource does not show to its page."""

    async def _ping(self) -> None:
        with suppress(ConnectionError, RuntimeError, TimeoutError):
            while True:
                await asyncio.sleep(self._ping_interval)
                await self.send("{}", event="heartbeat")


class TooManyStreams(Busy):
    """As many clients follow the events as this process takes on."""


async def begin(
    request: web.Request, *, heartbeat: float, kind: type[EventSourceResponse] = EventSourceResponse
) -> tuple[EventSourceResponse, StreamWriter]:
    """Begin an event stream. Return its answer, to be entered as a context, and its writer.

    It has a comment, or an event of a BeatingResponse, at least every `heartbeat` seconds. Raises ClientGone.
    """
    if request.transport is None or request.transport.is_closing():
        raise ClientGone("the client closed the connection before its event stream began")
    response = kind(ping_interval=heartbeat, send_timeout=2 * heartbeat, allow_all_methods=True)
    response.headers.update(_HEADERS)
    writer = await response.prepare(request)
    assert isinstance(writer, StreamWriter)
    return response, writer
