"""HTTP of measurements as bytes on the wire: one kept connection, and a load over many connections."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import cast

import attrs


def post(path: str, body: bytes, media: str = "application/json", key: str | None = None) -> bytes:
    """A POST as it goes over the wire, with an idempotency key if there is one."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n"
    if key is not None:
        head += f"Idempotency-Key: {key}\r\n"
    return head.encode() + b"\r\n" + body


def get(path: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


@attrs.frozen
class Answer:
    """A whole answer: its status, its head in lower case, and its body."""

    status: int
    head: bytes
    body: bytes

    def field(self, name: bytes) -> int:
        """The number in a field of the head; `name` is in lower case."""
        return _number(self.head, name)


class Client:
    """One kept connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> Answer:
        """Read a path."""
        return await self.ask(get(path))

    async def ask(self, request: bytes) -> Answer:
        """Send a whole request."""
        if self._streams is None or self._streams[0].at_eof():  # the server ends idle connections
            self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        chunked = b"transfer-encoding: chunked" in head
        body = await _chunks(reader) if chunked else await reader.readexactly(_number(head, b"content-length"))
        if b"connection: close" in head:
            self.close()
        return Answer(int(head[9:12]), head, body)

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _number(head: bytes, name: bytes) -> int:
    return int(head.split(name + b":")[1].split(b"\r", 1)[0])


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = list[bytes]()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        chunks.append((await reader.readexactly(size + 2))[:-2])
    await reader.readexactly(2)
    return b"".join(chunks)


@attrs.define
class Load:
    """The result of one load: latencies in seconds, and how many answers had which status."""

    seconds: float
    latencies: list[float] = attrs.field(factory=list)
    statuses: dict[int, int] = attrs.field(factory=dict)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        return sorted(self.latencies)[int(part * (len(self.latencies) - 1))] * 1000


class _LoadedConnection(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, request: Callable[[], bytes], load: Load, until: float) -> None:
        self._request = request
        self._load = load
        self._until = until
        self._began = 0.0
        self._buffer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        now = time.perf_counter()
        self._load.latencies.append(now - self._began)
        status = int(head[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._buffer = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None) if exc is None else self.done.set_exception(exc)


async def load(*ports: int, request: Callable[[], bytes], connections: int, seconds: float) -> Load:
    """Ask over that many connections for that many seconds, one port after the other."""
    result = Load(seconds)
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    clients = [
        (await loop.create_connection(lambda: _LoadedConnection(request, result, until), "127.0.0.1", port))[1]
        for port in itertools.islice(itertools.cycle(ports), connections)
    ]
    await asyncio.gather(*(client.done for client in clients))
    result.seconds = time.perf_counter() - began
    return result


def show(name: str, runs: Sequence[Load], note: str = "") -> None:
    """Print the median, lowest and highest rate, the medians of the percentiles, and a note."""
    rates = [run.rate for run in runs]
    p50, p99 = (statistics.median(run.percentile(part) for run in runs) for part in (0.5, 0.99))
    span = f"({min(rates):,.0f} to {max(rates):,.0f})"
    print(f"{name:48} {statistics.median(rates):9,.0f}/s {span:20} p50 {p50:.2f} ms  p99 {p99:.2f} ms{note}", flush=True)
