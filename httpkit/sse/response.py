"""Beginning the answer to a client that follows events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from aiohttp import web
from aiohttp.http import StreamWriter
from aiohttp_sse import EventSourceResponse

from httpkit.messages.body import ClientGone
from httpkit.problems import Busy

_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-transform"}


class TooManyStreams(Busy):
    """As many clients follow the events as this process takes on."""


async def begin(request: web.Request, *, heartbeat: float) -> tuple[EventSourceResponse, StreamWriter]:
    """Begin an event stream. Return its answer, to be entered as a context, and its writer.

    It has a comment at least every `heartbeat` seconds. Raises ClientGone.
    """
    if request.transport is None or request.transport.is_closing():
        raise ClientGone("the client closed the connection before its event stream began")
    response = EventSourceResponse(ping_interval=heartbeat, send_timeout=2 * heartbeat, allow_all_methods=True)
    response.headers.update(_HEADERS)
    writer = await response.prepare(request)
    assert isinstance(writer, StreamWriter)
    return response, writer
