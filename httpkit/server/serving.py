"""HTTP connections: the protocol under aiohttp, deadlines and limits, TLS, listening, and the end by a signal."""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import attrs
import msgspec
import structlog
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from eventlog.support.timers import TimerQueue
from httpkit.edge import Edge, Reply
from httpkit.errors import HttpkitError
from httpkit.messages.binding import ClientGone
from httpkit.problems import INTERNAL_ERROR, Problems
from httpkit.server.guard import is_loopback

log = structlog.get_logger(__name__)


class HttpConnection(RequestHandler):
    """A connection of a client."""

    __slots__ = ("_begun", "_gone", "_head_timer", "_problems", "_read_timeout", "_reading", "_write_timer", "_write_timers")

    def __init__(
        self, manager: web.Server, *, problems: Problems, read_timeout: float, write_timers: TimerQueue, **settings: Any
    ) -> None:
        """`write_timers` limit the time within which a client has to take something. All connections share them."""
        super().__init__(manager, loop=asyncio.get_running_loop(), **settings)
        self._problems = problems
        self._read_timeout = read_timeout
        self._write_timers = write_timers
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading = False
        self._begun = False
        self._write_timer: int | None = None
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
        if self._write_timer is not None:
            self._write_timers.clear(self._write_timer)
            self._write_timer = None

    def _watch_writing(self) -> None:
        if self._write_timer is None:
            self._write_timer = self._write_timers.set(self._check_written)

    def _check_written(self) -> None:
        self._write_timer = None
        transport = self.transport
        if transport is not None and transport.get_write_buffer_size() > 0:
            log.info("client does not read", peer=self.peername, seconds=self._write_timers.seconds)
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


class TlsUnusable(HttpkitError):
    """The certificate or the key cannot be used; the text names the file and the reason."""

    status = HTTPStatus.BAD_REQUEST


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS of a server, version 1.2 or newer. `certificate` is PEM, with the certificates between it and its authority.

    Raises TlsUnusable for files that cannot be read or do not belong together, and for a key that every user can read.
    """
    try:
        if key.stat().st_mode & 0o007:
            raise TlsUnusable(f"tls_key: every user of this machine has access to {key}: chmod 600 it")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise TlsUnusable(
            f"tls_certificate {certificate} and tls_key {key} cannot be used: {error.reason or 'no PEM'}. "
            "The key must be the certificate's, without a password"
        ) from error
    except OSError as error:
        raise TlsUnusable(f"tls_certificate or tls_key: {error.filename or key}: {error.strerror}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


_BACKLOG = 1024
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@attrs.frozen(kw_only=True)
class ServerLimits:
    """Times in seconds, and the number of connections.

    `idle` is for a connection without a request, `read` for the head of a request, `write` for an answer, `shutdown` for open
    answers when the server stops, `lingering` for reading the rest of an unread body.
    """

    idle: float = 60.0
    read: float = 15.0
    write: float = 15.0
    shutdown: float = 30.0
    lingering: float = 2.0
    max_connections: int = 2000


@attrs.frozen
class ListenAddress:
    """The address of a server."""

    host: str
    port: int
    secure: bool = False

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - what to show, not what to bind
        scheme = "https" if self.secure else "http"
        return f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"


class _Factory:
    """Makes the protocol of each connection; refuses those beyond the limit."""

    def __init__(self, server: web.Server, limits: ServerLimits, edge: Edge) -> None:
        self._server = server
        self._limits = limits
        self._problems = edge.problems
        self._write_timers = TimerQueue(limits.write)
        self._make_request = server.request_factory
        server.request_factory = self._begin
        if edge.kept is not None:
            server.request_handler = cast(
                "Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]", edge.kept.before(server.request_handler)
            )

    def _begin(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        assert isinstance(protocol, HttpConnection)
        protocol.begin()
        return self._make_request(message, payload, protocol, writer, task)

    def __call__(self) -> asyncio.Protocol:
        if len(self._server.connections) >= self._limits.max_connections:
            return _Refusal(self._problems)
        return HttpConnection(
            self._server,
            problems=self._problems,
            read_timeout=self._limits.read,
            write_timers=self._write_timers,
            keepalive_timeout=self._limits.idle,
            lingering_time=self._limits.lingering,
            auto_decompress=False,
            access_log=None,
        )


class _Refusal(asyncio.Protocol):
    """A connection too many: it gets an answer and is closed."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        body = msgspec.json.encode(self._problems.document(503, "too many connections; try again"))
        head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        sink = cast("asyncio.Transport", transport)
        sink.write(head + b"Retry-After: 1\r\nConnection: close\r\n\r\n" + body)
        sink.close()


@asynccontextmanager
async def serving(
    app: web.Application,
    edge: Edge,
    *,
    host: str,
    port: int,
    limits: ServerLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ListenAddress]:
    """Serve an application while the block runs; port 0 takes a free one. With `tls` a handshake has `limits.read` seconds.

    At the end: no new connections, streams end (`on_shutdown`), requests in flight are answered within `limits.shutdown`.
    Raises OSError where the address cannot be bound.
    """
    limits = limits or ServerLimits()
    if not edge.guard.asks and not is_loopback(host):
        log.warning("no token is set: every client that reaches this address can use the service", host=host)
    handshake: dict[str, Any] = (
        {"ssl": tls, "ssl_handshake_timeout": limits.read, "ssl_shutdown_timeout": limits.lingering} if tls else {}
    )
    runner = web.AppRunner(app, shutdown_timeout=limits.shutdown)
    try:
        await runner.setup()
        assert runner.server is not None
        factory = _Factory(runner.server, limits, edge)
        listener = await asyncio.get_running_loop().create_server(
            factory, host, port, backlog=_BACKLOG, reuse_address=True, **handshake
        )
        gc.collect()
        gc.freeze()  # what there is by now stays: the collector need not look through it again and again
        try:
            yield ListenAddress(host, listener.sockets[0].getsockname()[1], secure=tls is not None)
        finally:
            listener.close()
    finally:
        await runner.cleanup()


@contextmanager
def termination() -> Iterator[asyncio.Future[signal.Signals]]:
    """A future for SIGINT or SIGTERM: enter it before anything is started, await it while all is running.

    A second signal, while the end is under way, ends the process at once.
    """
    loop = asyncio.get_running_loop()
    received: asyncio.Future[signal.Signals] = loop.create_future()

    def restore() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def receive(number: signal.Signals) -> None:
        restore()
        if not received.done():
            received.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, receive, number)
    try:
        yield received
    finally:
        restore()
        received.cancel()
