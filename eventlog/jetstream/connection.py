"""The connection to NATS: kept up for ever, watched, replaced when it is dead without noticing, and honest about its state.

The settings and the watchdog answer measured faults of nats-py: an exception in any callback ends its read loop while it still
reports that it is connected, default pings notice a paused server after minutes, attempts to reconnect run out.

Each reply to a request is waited for by its token, and a lost connection ends the wait at once. nats-py's own request waits until
its timeout if the connection is lost, cannot take several replies to one request, and hands each reply through a queue and two
tasks. Here they share one subscription too, but are taken off the wire.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import attrs
import nats.errors
import structlog

from eventlog.errors import OutcomeUnknown, Unavailable
from eventlog.jetstream.client import NatsClient, frame, safe
from eventlog.support.timers import tick

T = TypeVar("T")

ASK_AGAIN = 0.5
"""Seconds after which a request is repeated: a request to a leader that died is lost without an error."""

MOST_PENDING = 8 * 1024**2
"""Bytes that may wait to be written before requests are refused: above it nats-py would block, and not be cancellable."""

_NO_RESPONDERS = "503"
_STATUS_LINE = b"NATS/1.0 "


class Silence(OutcomeUnknown):
    """No answer came in time, over a connection that is there."""


class Denied(OutcomeUnknown):
    """The server denies messages on the subject to this user.

    Its report names no message: if permissions change while several are on their way, an earlier one may have arrived.
    """


class NotTaken(Unavailable):
    """Nothing on NATS takes the message: it was not sent to anyone."""


@attrs.frozen
class NatsReply:
    """A reply: the payload, and the header block as it was on the wire (None: none)."""

    data: bytes
    head: bytes | None = None

    @property
    def status(self) -> str | None:
        """The status of a reply without a message (`NATS/1.0 404 Message Not Found`), None for a message."""
        if self.head is None or not self.head.startswith(_STATUS_LINE):
            return None
        return self.head[len(_STATUS_LINE) : len(_STATUS_LINE) + 3].decode()

    @property
    def description(self) -> str:
        """The first line of the header block, for people."""
        return "" if self.head is None else self.head.partition(b"\r\n")[0].decode(errors="replace")

    def header(self, name: bytes) -> str:
        """The value of a header. Raises KeyError if it is missing."""
        _, found, rest = (self.head or b"").partition(b"\r\n%b:" % name)
        if not found:
            raise KeyError(name)
        return rest.partition(b"\r\n")[0].strip().decode()


class ReplyRouter:
    """The replies that one client waits for."""

    def __init__(self, client: NatsClient) -> None:
        self._client = client
        self._prefix = f"{client.new_inbox()}."
        self._tokens = itertools.count()
        self._waiting: dict[bytes, tuple[str, Callable[[NatsReply | OutcomeUnknown], None]]] = {}
        client.on_loss.add(self._lose)

    async def open(self) -> None:
        """Subscribe. nats-py subscribes again by itself after each reconnect."""
        await self._client.tap(f"{self._prefix}*", self._on_reply)

    def _lose(self) -> None:
        """End all waits: the connection is gone, and with it the replies."""
        for _, settle in list(self._waiting.values()):
            settle(OutcomeUnknown("the connection to NATS was lost before the answer came"))

    def deny(self, denied: str) -> None:
        """End the waits for replies to messages on a subject that the server denies; upper and lower case are the same."""
        for subject, settle in list(self._waiting.values()):
            if subject.lower() == denied.lower():
                settle(Denied(f"NATS does not permit this user to send to {subject}"))

    def _on_reply(self, subject: bytes, _: bytes, data: bytes, head: bytes | None) -> None:
        waiting = self._waiting.get(subject[len(self._prefix) :])
        if waiting is not None:  # else no caller waits any more
            waiting[1](NatsReply(data, head))

    async def send_batch(self, messages: Sequence[tuple[str, bytes, bytes]], timeout: float) -> NatsReply:  # noqa: ASYNC109 - ends with a special error
        """Send messages (subject, header lines, payload) in one piece; the reply to the last one.

        Of several the first asks for a reply too. If that is not empty it is the result: the reason why there is no other.
        Errors as in `request`.
        """
        result: asyncio.Future[NatsReply] = asyncio.get_running_loop().create_future()
        inbox, last = self._token()

        def settle_early(reply: NatsReply | OutcomeUnknown) -> None:
            if isinstance(reply, NatsReply) and reply.data == b"" and reply.status is None:
                return  # the batch is open
            _settle(result, reply)

        frames = [frame(subject, "", headers, payload) for subject, headers, payload in messages[1:-1]]
        subject, headers, payload = messages[-1]
        frames.append(frame(subject, inbox, headers, payload))
        first = b""
        if len(messages) > 1:
            inbox, first = self._token()
            subject, headers, payload = messages[0]
            frames.insert(0, frame(subject, inbox, headers, payload))
            self._waiting[first] = (subject, settle_early)
        self._waiting[last] = (messages[-1][0], partial(_settle, result))
        try:
            await self._write(frames)
            reply = await _within(timeout, result)
        finally:
            self._waiting.pop(last, None)
            self._waiting.pop(first, None)
        return _taken(messages[-1][0], reply)

    async def ask(self, subject: str, payload: bytes, timeout: float) -> NatsReply:  # noqa: ASYNC109 - ends with a special error
        """The reply to a message that may come to the server twice: without one it is sent again, every ASK_AGAIN seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        inbox, token = self._token()
        try:
            while True:
                result: asyncio.Future[NatsReply] = loop.create_future()
                self._waiting[token] = (subject, partial(_settle, result))  # a late reply to an earlier try is as good
                await self._write([frame(subject, inbox, b"", payload)])
                left = end - loop.time()
                try:
                    return _taken(subject, await _within(min(left, ASK_AGAIN), result))
                except Silence as error:
                    if left <= ASK_AGAIN:
                        raise _silence(timeout) from error
        finally:
            self._waiting.pop(token, None)

    async def request_many(self, subject: str, payload: bytes, timeout: float) -> AsyncIterator[NatsReply]:  # noqa: ASYNC109 - ends with a special error
        """The replies to a message, each within `timeout` seconds of the one before. The caller recognizes the last."""
        replies: asyncio.Queue[NatsReply | OutcomeUnknown] = asyncio.Queue()
        inbox, token = self._token()
        self._waiting[token] = (subject, replies.put_nowait)
        try:
            await self._write([frame(subject, inbox, b"", payload)])
            while True:
                try:
                    # Most replies come together with the one before: no timer is set for those.
                    async with asyncio.timeout(timeout if replies.empty() else None):
                        reply = await replies.get()
                except TimeoutError as error:
                    raise _silence(timeout) from error
                if isinstance(reply, OutcomeUnknown):
                    raise reply
                yield _taken(subject, reply)
        finally:
            self._waiting.pop(token, None)

    def _token(self) -> tuple[str, bytes]:
        """A subject for replies, and under which key they are waited for."""
        token = f"{next(self._tokens):x}"
        return self._prefix + token, token.encode()

    async def _write(self, frames: Sequence[bytes]) -> None:
        if not self._client.takes_frames:
            raise Unavailable("there is no connection to NATS")
        if self._client.pending_data_size > MOST_PENDING:
            raise Unavailable("NATS does not take what is sent: too much waits to be written")
        await self._client.write(frames)


def _settle(result: asyncio.Future[NatsReply], reply: NatsReply | OutcomeUnknown) -> None:
    if not result.done():
        if isinstance(reply, NatsReply):
            result.set_result(reply)
        else:
            result.set_exception(reply)


def _taken(subject: str, reply: NatsReply) -> NatsReply:
    """The reply of a listener that took the message. Raises Unavailable if the server reports that there is no listener."""
    if reply.status == _NO_RESPONDERS:
        raise NotTaken(f"nothing on NATS takes {subject}: no leader yet, or no such stream")
    return reply


async def _within(timeout: float, result: asyncio.Future[T]) -> T:  # noqa: ASYNC109 - see below
    """A separate timer on the future: a third of the cost of asyncio.timeout, and this is the busiest place there is."""
    timer = asyncio.get_running_loop().call_later(timeout, _expire, result, timeout)
    try:
        return await result
    finally:
        timer.cancel()


def _expire(result: asyncio.Future[T], timeout: float) -> None:
    if not result.done():
        result.set_exception(_silence(timeout))


def _silence(timeout: float) -> Silence:
    return Silence(f"NATS did not answer within {timeout:g} s")


CHECK_EVERY = 5.0
CHECK_TIMEOUT = 2.0


def _listed(servers: str | Sequence[str]) -> Sequence[str]:
    listed = servers.split(",") if isinstance(servers, str) else servers
    return tuple(server.strip() for server in listed)


@attrs.frozen(kw_only=True)
class ConnectionOptions:
    """How to connect: name and addresses, and intervals in seconds.

    `servers` are addresses: one, several, or several with commas between. User and password or a token are in the address
    (`nats://user:secret@host`).
    """

    servers: Sequence[str] = attrs.field(converter=_listed, validator=attrs.validators.min_len(1))
    name: str
    check_every: float = CHECK_EVERY
    check_timeout: float = CHECK_TIMEOUT

    @property
    def addresses(self) -> str:
        """The addresses for people and logs: without user and password."""
        return ", ".join(_without_secret(server) for server in self.servers)

    def for_nats(self) -> dict[str, Any]:
        """The arguments of nats-py's `connect`, without callbacks."""
        return {
            "servers": list(self.servers),
            "name": self.name,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.25,
            "connect_timeout": 2,
            "ping_interval": 2,
            "max_outstanding_pings": 2,
            "pending_size": 2 * MOST_PENDING,
            "flush_timeout": 2,
        }


def _without_secret(server: str) -> str:
    return urlsplit(server).netloc.rpartition("@")[2] or server.rpartition("@")[2]


log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 2.0
RECONNECT_GRACE = 5.0
"""Seconds that a client may reconnect by itself before the watchdog tries a second one."""

_CLOSE_TIMEOUT = 5.0
_CUT_OFF = (ConnectionResetError, BrokenPipeError, nats.errors.UnexpectedEOF)
"""Errors of a connection that the server ended."""
_DENIED = re.compile('permissions violation for publish to "([^"]+)"', re.IGNORECASE)


@attrs.define
class Counters:
    """Counts of events of a connection since it was opened, for metrics."""

    reconnects: int = 0
    """How often nats-py connected again by itself."""
    replaced: int = 0
    """How often the watchdog replaced a client that was dead. The new client does not have the subscriptions of the old one."""
    untaken: int = 0
    """How often nothing on NATS took a message: a stream may be missing or closed."""


class Connection:
    """One connection to NATS: `async with Connection.open("nats://127.0.0.1:4222", name="bank-serve") as connection`."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.counters = Counters()
        self._client = NatsClient()
        self._router = ReplyRouter(self._client)
        self._up = asyncio.Event()
        self._down_since = self._answered = 0.0
        self._alarm = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last_error = ""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        servers: str | Sequence[str],
        *,
        name: str,
        timeout: float = CONNECT_TIMEOUT,  # noqa: ASYNC109 - asyncio.timeout around it could not give the reason
        check_every: float = CHECK_EVERY,
        check_timeout: float = CHECK_TIMEOUT,
    ) -> AsyncIterator[Connection]:
        """Connect within `timeout` seconds and stay connected until the end of the block.

        `servers` are addresses: one, several, or several with commas between; `name` is the name of this client on the server.
        A ping goes out every two seconds. Two without an answer end the connection, and it is opened again, for ever. Raises
        Unavailable.
        """
        options = ConnectionOptions(
            servers=servers,
            name=name,
            check_every=check_every,
            check_timeout=check_timeout,
        )
        connection = cls(options)
        connection._client, connection._router = await connection._connect(timeout)
        watchdog = asyncio.create_task(connection._watch(), name=f"nats watchdog of {name}")
        try:
            yield connection
        finally:
            watchdog.cancel()
            await asyncio.wait({watchdog})
            await connection._close()

    @property
    def client(self) -> NatsClient:
        """The nats-py client of the moment. Do not keep it: the watchdog may replace it."""
        return self._client

    @property
    def connected(self) -> bool:
        """Whether the server answered a short while ago, without a fault since."""
        age = time.monotonic() - max(self._answered, self._client.heard)
        return self._client.is_connected and age <= self.options.check_every + self.options.check_timeout + 1

    @property
    def max_payload(self) -> int:
        """Bytes that one message may have, headers and all, as the server said."""
        return self._client.max_payload

    async def ping(self, timeout: float = CHECK_TIMEOUT) -> None:  # noqa: ASYNC109 - asyncio.timeout would cancel the ping
        """Ask the server for a sign of life. Raises Unavailable."""
        if not await self._answers(self._client, timeout):
            raise Unavailable(f"NATS at {self.options.addresses} does not answer{self._reason()}")

    async def up(self, timeout: float) -> None:  # noqa: ASYNC109 - asyncio.timeout around it could not give the reason
        """Wait until there is a connection. Raises Unavailable after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not self._client.is_connected:
                    self._up.clear()
                    await self._up.wait()
        except TimeoutError as error:
            raise Unavailable(f"no connection to NATS at {self.options.addresses}{self._reason()}") from error

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: bytes = b"",
        timeout: float = REQUEST_TIMEOUT,  # noqa: ASYNC109 - ends with a special error
    ) -> NatsReply:
        """The reply to a message; `headers` are lines as on the wire.

        Raises Unavailable (not sent, or no listener takes it) and OutcomeUnknown (sent, and no reply came).
        """
        return await self.send_batch(((subject, headers, payload),), timeout)

    async def ask(self, subject: str, payload: bytes = b"", *, timeout: float = REQUEST_TIMEOUT) -> NatsReply:  # noqa: ASYNC109 - as in `request`
        """As `request`, for a request that may be repeated: it is sent again while no reply comes.

        So a request to a leader that died costs no more than half a second once there is another.
        """
        return await self._router.ask(subject, payload, timeout)

    async def send_batch(self, messages: Sequence[tuple[str, bytes, bytes]], timeout: float) -> NatsReply:  # noqa: ASYNC109 - as in `request`
        """Send messages (subject, header lines, payload) in one piece; the reply to the last. Errors as in `request`.

        Of several the first asks for a reply too; if that has content it is the result: the reason why there is no other.
        """
        try:
            return await self._router.send_batch(messages, timeout)
        except NotTaken:
            self.counters.untaken += 1
            raise

    def request_many(self, subject: str, payload: bytes, *, timeout: float = REQUEST_TIMEOUT) -> AsyncIterator[NatsReply]:
        """The replies to a message, each within `timeout` seconds. The caller recognizes the last. Errors as in `request`."""
        return self._router.request_many(subject, payload, timeout)

    # Making and ending clients

    async def _connect(self, timeout: float) -> tuple[NatsClient, ReplyRouter]:  # noqa: ASYNC109 - as in `open`
        client = NatsClient()
        router = ReplyRouter(client)
        callbacks: dict[str, Any] = {
            "error_cb": safe(self._on_error),
            "disconnected_cb": safe(lambda: self._on_disconnected(client)),
            "reconnected_cb": safe(lambda: self._on_reconnected(client)),
            "closed_cb": safe(lambda: self._on_closed(client)),
        }
        connecting = self._start(_connected(client, router, self.options.for_nats() | callbacks))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(connecting)
        except BaseException as error:
            await self._discard(client, connecting)
            if not isinstance(error, OSError | nats.errors.Error | ValueError):  # TimeoutError is an OSError
                raise
            reason = self._reason() if isinstance(error, TimeoutError) else f": {error}"
            raise Unavailable(
                f"cannot connect to NATS at {self.options.addresses} within {timeout:g} s{reason}; "
                "is the server running, and is the address right?"
            ) from error
        self._answered = time.monotonic()
        self._up.set()
        return client, router

    async def _close(self) -> None:
        self._client.lose()
        await self._discard(self._client)
        for task in self._tasks:  # pings that were never answered, and clients that do not end
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_TIMEOUT)

    async def _discard(self, client: NatsClient, connecting: asyncio.Task[None] | None = None) -> None:
        """Close a client, or cut it off; not with asyncio.timeout, since nats-py swallows being cancelled."""
        ended, _ = await asyncio.wait({self._start(client.discard(connecting))}, timeout=_CLOSE_TIMEOUT)
        if not ended:
            client.cut_off()

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        def done(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                log.debug("nats call failed", error=repr(task.exception()))

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)
        return task

    # Callbacks of nats-py

    def _on_error(self, error: Exception) -> None:
        text = str(error) or repr(error)
        if (denied := _DENIED.search(text)) is not None:
            self._router.deny(denied[1])
        if isinstance(error, _CUT_OFF) and "authorization" in self._last_error.lower():
            return  # a server that refuses closes at once, which can be seen before its answer
        if text != self._last_error:  # a server that is away is one line, not four a second
            self._last_error = text
            log.warning("nats error", error=text, servers=self.options.addresses)

    def _on_disconnected(self, client: NatsClient) -> None:
        client.lose()
        if client is self._client:
            self._down_since = time.monotonic()
            if not client.is_closed:  # otherwise it was we who ended it
                log.warning("nats disconnected", servers=self.options.addresses)

    def _on_reconnected(self, client: NatsClient) -> None:
        self.counters.reconnects += 1
        if client is self._client:
            self._answered = time.monotonic()
            self._last_error = ""
            self._up.set()
            log.info("nats reconnected", server=client.address)

    def _on_closed(self, client: NatsClient) -> None:
        if client is self._client:
            self._alarm.set()  # nats-py gave up, as it does when it is refused

    def _reason(self) -> str:
        return f": {self._last_error}" if self._last_error else ""

    # The watchdog

    async def _watch(self) -> None:
        while True:
            await tick(self.options.check_every, self._alarm)
            self._alarm.clear()
            try:
                if not await self._healthy():
                    await self._replace()
            except Unavailable as error:
                log.debug("nats still away", error=str(error))
            except Exception:
                log.exception("nats watchdog failed")  # it must outlive what it watches

    async def _healthy(self) -> bool:
        client, now = self._client, time.monotonic()
        if client.is_closed:
            return False
        if not client.is_connected:  # nats-py connects again, or waits for the answers of the server to it
            return now - self._down_since < RECONNECT_GRACE
        if now - client.heard < self.options.check_every:
            return True  # it answered a ping of nats-py, say: a second ping would cost without a gain
        # A ping that is lost with the connection says nothing about the next one.
        return await self._answers(client, self.options.check_timeout) or self._down_since > now

    async def _answers(self, client: NatsClient, timeout: float) -> bool:  # noqa: ASYNC109 - must not cancel the ping
        if not client.is_connected:
            return False
        ping = self._start(client.rtt(timeout=int(60 + timeout)))
        await asyncio.wait({ping}, timeout=timeout)
        if not ping.done() or ping.cancelled() or ping.exception() is not None:
            return False
        self._answered = time.monotonic()
        return True

    async def _replace(self) -> None:
        """Put a new client in the place of one that does not answer; nothing changes if none can be made."""
        fresh = await self._connect(self.options.check_timeout)
        old, (self._client, self._router) = self._client, fresh
        self.counters.replaced += 1
        self._last_error = ""
        log.warning("nats client replaced", server=self._client.address, replaced=self.counters.replaced)
        old.lose()
        closing = self._start(self._discard(old))
        closing.add_done_callback(lambda _: log.debug("dead nats client closed"))


async def _connected(client: NatsClient, router: ReplyRouter, how: dict[str, Any]) -> None:
    await client.connect(**how)
    await router.open()
