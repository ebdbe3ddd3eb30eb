"""One connection: bounds in addition to the bounds of aiohttp's own protocol.

- The head of a request has to arrive within `read_timeout` of its first byte; aiohttp alone allows it the whole idle time.
- The first byte of a connection has to arrive within the idle time; aiohttp alone waits for ever.
- A client has to take a part of the answer within `write_timeout`; aiohttp alone waits for ever.
- Errors that aiohttp itself answers (bytes other than HTTP, an unknown expectation) are problem documents.
- A stream hears at once that its client has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from eventlog.support.timers import TimerQueue
from httpkit.messages.body import ClientGone
from httpkit.problems import INTERNAL_ERROR, Problems
from httpkit.server.reply import Reply

log = structlog.get_logger(__name__)


class HttpConnection(RequestHandler):
    """A connection of a client."""

    __slots__ = ("_begun", "_gone", "_head_timer", "_problems", "_read_timeout", "_reading", "_write_alarm", "_write_alarms")

    def __init__(
        self, manager: web.Server, *, problems: Problems, read_timeout: float, write_alarms: TimerQueue, **settings: Any
    ) -> None:
        """`write_alarms` limit the time within which a client has to take something. All connections share them."""
        super().__init__(manager, loop=asyncio.get_running_loop(), **settings)
        self._problems = problems
        self._read_timeout = read_timeout
        self._write_alarms = write_alarms
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading = False
        self._begun = False
        self._write_alarm: int | None = None
        self._gone: list[Callable[[], object]] = []

    @contextmanager
    def calls_when_gone(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call this if the client closes the connection during the block, or it breaks."""
        self._gone.append(callback)
        try:
            yield
        finally:
            if callback in self._gone:
                self._gone.remove(callback)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: it has to say something."""
        super().connection_made(transport)
        self._close_in(self._keepalive_timeout)

    def begin(self) -> None:
        """The head of a request is complete."""
        self._begun = True
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._reading = False
        self._stop_write_timer()

    def data_received(self, data: bytes) -> None:
        """Bytes from the client: the first of a head that is not complete start the time that it may take."""
        super().data_received(data)
        # Without a waiter a request is under way, whose body comes in parts, or the task that waits has not begun.
        if not self._reading and not self._messages and not (self._begun if self._waiter is None else self._waiter.done()):
            self._reading = True
            self._close_in(self._read_timeout)

    def _close_in(self, seconds: float) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self._loop.call_later(seconds, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is no more."""
        self.begin()
        super().connection_lost(exc)
        gone, self._gone = self._gone, []
        for callback in gone:
            callback()

    def pause_writing(self) -> None:
        """The client takes less than it is sent: it has to take some of it in time."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        self._stop_write_timer()

    def _stop_write_timer(self) -> None:
        if self._write_alarm is not None:
            self._write_alarms.clear(self._write_alarm)
            self._write_alarm = None

    def _watch_writing(self) -> None:
        if self._write_alarm is None:
            self._write_alarm = self._write_alarms.set(self._check_written)

    def _check_written(self) -> None:
        self._write_alarm = None
        transport = self.transport
        if transport is not None and transport.get_write_buffer_size() > 0:
            log.info("client does not read", peer=self.peername, seconds=self._write_alarms.seconds)
            transport.abort()

    def force_close(self) -> None:
        """Close now, without waiting for a client that has not taken its answer."""
        transport = self.transport
        super().force_close()
        if transport is not None and transport.get_write_buffer_size() > 0:
            transport.abort()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; whether the client was gone before it was sent."""
        if resp.status == HTTPStatus.REQUEST_TIMEOUT:
            self._lingering_time = 0.0  # the body has had its time: the rest of it is not read
        if isinstance(resp, Reply) and (wire := resp.wire(request)) is not None:
            return resp, not await self._send(request, wire)
        if isinstance(resp, web.HTTPException) and resp.status >= HTTPStatus.BAD_REQUEST:
            resp = self._problems.of(resp, instance=request.rel_url.raw_path, request_id=None)
        result = await super().finish_response(request, resp, start_time)
        if self.transport is not None and self.transport.get_write_buffer_size() > 0:
            self._watch_writing()
        return result

    async def _send(self, request: web.BaseRequest, wire: bytes) -> bool:
        transport = self.transport
        if transport is None or transport.is_closing():
            return False
        transport.write(wire)
        if transport.get_write_buffer_size() > 0:
            self._watch_writing()
            try:
                await request.writer.drain()
            except ConnectionError:
                return False
        return True

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it has a part of the request
    ) -> web.StreamResponse:
        """Answer a request that never reached the application: bytes other than HTTP, or a fault in aiohttp itself.

        A client that is gone is not a fault. Its answer is dropped. The log names the kind of a malformed request, and has no
        part of it: that may be a header with a token.
        """
        detail = INTERNAL_ERROR
        if isinstance(exc, ClientGone):
            log.debug("client is gone", remote=request.remote, reason=str(exc))
        elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
            detail = "the request is not well-formed HTTP"
            log.info("not HTTP", remote=request.remote, reason=type(exc).__name__)
        else:
            log.error("request failed outside of the application", exc_info=exc)
        answer = self._problems.response(status, detail)
        answer.force_close()
        return answer


def when_gone(request: web.Request, callback: Callable[[], object]) -> AbstractContextManager[None]:
    """Call this if the client of a request closes the connection during the block, or it breaks."""
    connection = request.protocol
    return connection.calls_when_gone(callback) if isinstance(connection, HttpConnection) else nullcontext()


def cancels_when_gone(request: web.Request) -> AbstractContextManager[None]:
    """Cancel the present task if the client of a request closes the connection during the block, or it breaks."""
    task = asyncio.current_task()
    assert task is not None, "a handler runs in a task"
    return when_gone(request, task.cancel)
