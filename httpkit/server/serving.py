"""Serve an application: limits on connections and time, a graceful end."""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
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

from eventlog.support.timers import TimerQueue
from httpkit.edge import Edge
from httpkit.errors import HttpkitError
from httpkit.problems import Problems
from httpkit.server.guard import is_loopback
from httpkit.server.protocol import HttpConnection


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


log = structlog.get_logger(__name__)

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
        self._write_alarms = TimerQueue(limits.write)
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
            write_alarms=self._write_alarms,
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
