"""Event streams: frames per second and the time from publishing to receipt, and aiohttp-sse's own send() in the same run.

Clients are in a second process. Four ways of sending the same frames (id, event, about 200 bytes of data):

- send: `await response.send(...)` to one client after the other, as aiohttp-sse offers it
- hub, alone: one frame per publish, given to every client before the next is published, so that none share a write
- hub: one frame per publish, without waiting for the hub, so that what queues up shares a write
- hub, tens: ten frames per publish, as a projector's batch gives them
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import cast

import attrs
import structlog
import uvloop
from aiohttp import web
from aiohttp_sse import EventSourceResponse

from bench.helpers import show_machine
from eventlog.commit import Position
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.routes import Call, Nothing, Route
from httpkit.server.serving import ListenAddress, ServerLimits, serving
from httpkit.sse.hub import Hub
from httpkit.sse.stream import Frame, StreamSettings

_TOKEN = b'"t":'
_STAMP = re.compile(rb'"t":(\d+)')
_PADDING = "x" * 120


def data_of(number: int) -> bytes:
    """The data of a frame: its number, when it was published (nanoseconds), and something to carry."""
    return b'{"n":%d,"t":%d,"repo_url":"%b"}' % (number, time.monotonic_ns(), _PADDING.encode())


# --- the clients' process


class Receiver(asyncio.Protocol):
    """One client: counts frames, and notes delays where asked to."""

    def __init__(self, request: bytes, expected: int, delays: list[int] | None, done: Callable[[], None]) -> None:
        self._request = request
        self._expected = expected
        self._delays = delays
        self._done = done
        self._tail = b""
        self.connected = asyncio.get_running_loop().create_future()
        self._count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self.connected.done():
            self.connected.set_result(None)
        joined = self._tail + data
        found = joined.count(_TOKEN)
        self._tail = joined[-(len(_TOKEN) - 1) :]
        if self._delays is not None:
            self._delays.extend(now - int(stamp) for stamp in _STAMP.findall(data))
        self._count += found
        if found and self._count >= self._expected:
            self._done()


async def receive(port: int, path: str, clients: int, expected: int, *, delays: bool) -> None:
    """Be `clients` clients; report when all are connected, and when all have had `expected` frames."""
    loop = asyncio.get_running_loop()
    finished = asyncio.Event()
    left = clients
    noted: list[int] | None = [] if delays else None

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            finished.set()

    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode()
    for _ in range(clients):
        _, receiver = await loop.create_connection(lambda: Receiver(request, expected, noted, done), "127.0.0.1", port)
        await receiver.connected
    print("ready", flush=True)
    await finished.wait()
    at = time.monotonic_ns()
    noted = sorted(noted or [0])
    pick = {name: noted[min(len(noted) - 1, int(len(noted) * part))] / 1e6 for name, part in (("p50", 0.5), ("p99", 0.99))}
    print(json.dumps({"at": at, **pick}), flush=True)


# --- the server's process


@attrs.frozen
class Senders:
    """The senders of the two routes."""

    hub: Hub
    responses: list[EventSourceResponse]


async def hub_events(_: Nothing, call: Call[Senders]) -> web.StreamResponse:
    """The hub's stream."""
    return await call.services.hub.stream(call.http)


async def send_events(_: Nothing, call: Call[Senders]) -> web.StreamResponse:
    """A stream that is sent to with aiohttp-sse's own send()."""
    response = EventSourceResponse(ping_interval=3600)
    await response.prepare(call.http)
    await response.write(b": hello\n\n")
    call.services.responses.append(response)
    async with response:
        await response.wait()
    return response


TABLE = (
    Route("GET", "/hub", hub_events, summary="hub", events={"task": dict[str, int]}),
    Route("GET", "/send", send_events, summary="send", events={"task": dict[str, int]}),
)


class Publisher:
    """Publishes frames in one of the ways."""

    def __init__(self, senders: Senders) -> None:
        self._senders = senders
        self._sequence = senders.hub.sequence

    def _frames(self, count: int) -> list[Frame]:
        first = self._sequence + 1
        self._sequence += count
        return [Frame(Position(number), "task", data_of(number)) for number in range(first, self._sequence + 1)]

    async def send(self) -> None:
        """One frame to one client after the other, as aiohttp-sse does it."""
        self._sequence += 1
        data, id_ = data_of(self._sequence).decode(), str(self._sequence)
        for response in self._senders.responses:
            await response.send(data, id=id_, event="task")

    async def hub_alone(self) -> None:
        """One frame by the hub, and wait until all clients were given it."""
        hub = self._senders.hub
        due = hub.sent + hub.clients
        await self.hub()
        while hub.sent < due:  # noqa: ASYNC110 - the same, and a turn of the loop is what is measured
            await asyncio.sleep(0)

    async def hub(self) -> None:
        """One frame by the hub."""
        self._senders.hub.publish(self._frames(1), self._sequence)
        await asyncio.sleep(0)

    async def hub_tens(self) -> None:
        """Ten frames by the hub."""
        self._senders.hub.publish(self._frames(10), self._sequence)
        await asyncio.sleep(0)


@attrs.frozen
class Way:
    """A way of sending: its route, how it publishes, how many frames at a time."""

    name: str
    path: str
    publish: Callable[[Publisher], Awaitable[None]]
    frames: int = 1


WAYS = (
    Way("send", "/send", Publisher.send),
    Way("hub, alone", "/hub", Publisher.hub_alone),
    Way("hub", "/hub", Publisher.hub),
    Way("hub, tens", "/hub", Publisher.hub_tens, 10),
)


async def clients_of(
    address: ListenAddress, way: Way, clients: int, expected: int, *, delays: bool
) -> asyncio.subprocess.Process:
    """Start the clients' process and wait until all are connected."""
    arguments = [str(address.port), way.path, str(clients), str(expected), "delays" if delays else "count"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "receive", *arguments, stdout=subprocess.PIPE, limit=1 << 20
    )
    assert process.stdout is not None
    if await asyncio.wait_for(process.stdout.readline(), 60) != b"ready\n":
        raise RuntimeError("the clients could not connect")
    return process


async def result_of(process: asyncio.subprocess.Process) -> dict[str, float]:
    """The reports of the clients at their end."""
    assert process.stdout is not None
    found: dict[str, float] = json.loads(await asyncio.wait_for(process.stdout.readline(), 120))
    await process.wait()
    return found


async def rate(senders: Senders, address: ListenAddress, way: Way, clients: int, frames: int) -> float:
    """Frames received per second, all clients together, with the server as fast as it can."""
    process = await clients_of(address, way, clients, frames, delays=False)
    publisher = Publisher(senders)
    started = time.monotonic_ns()
    for _ in range(frames // way.frames):
        await way.publish(publisher)
    result = await result_of(process)
    await settled(senders)
    return clients * frames / ((result["at"] - started) / 1e9)


async def delay(
    senders: Senders, address: ListenAddress, way: Way, clients: int, frames: int, pace: float
) -> tuple[float, float]:
    """Milliseconds from publishing to receipt: p50 and p99, at `pace` publishes a second."""
    process = await clients_of(address, way, clients, frames, delays=True)
    publisher = Publisher(senders)
    due = time.monotonic()
    for _ in range(frames // way.frames):
        due += 1 / pace
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await way.publish(publisher)
    result = await result_of(process)
    await settled(senders)
    return result["p50"], result["p99"]


async def settled(senders: Senders) -> None:
    """Wait until the server has noticed that the clients are gone."""
    for response in senders.responses:
        response.stop_streaming()
    senders.responses.clear()
    async with asyncio.timeout(10):
        while senders.hub.clients:  # noqa: ASYNC110 - the hub has no event for this, which only this program needs
            await asyncio.sleep(0.01)


async def no_replay(_: Position, __: int) -> AsyncGenerator[Sequence[Frame], None]:
    """No position is older than the ring here."""
    nothing: Sequence[Sequence[Frame]] = ()
    for frames in nothing:
        yield frames


async def measure(clients: int, frames: int, runs: int, pace: float) -> None:
    """Run all ways in turn, several times, and print the table."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    senders = Senders(Hub(no_replay, StreamSettings(max_clients=clients, heartbeat=3600)), [])
    senders.hub.start(0)
    edge = Edge(title="bench", version="1")
    app = build_application(TABLE, senders, edge, health=Health({}))
    rates: dict[str, list[float]] = {way.name: [] for way in WAYS}
    delays: dict[str, list[tuple[float, float]]] = {way.name: [] for way in WAYS}
    async with serving(app, edge, host="127.0.0.1", port=0, limits=ServerLimits(max_connections=clients + 10)) as address:
        for _ in range(runs):
            for way in WAYS:
                rates[way.name].append(await rate(senders, address, way, clients, frames * way.frames))
                if way.name in {"send", "hub"}:
                    delays[way.name].append(await delay(senders, address, way, clients, 100, pace))
    for way in WAYS:
        report(way, rates, delays[way.name])


def report(way: Way, rates: dict[str, list[float]], delays: list[tuple[float, float]]) -> None:
    """One line of the table."""
    found = rates[way.name]
    ratios = [ours / theirs for ours, theirs in zip(found, rates["send"], strict=True)]
    line = f"{way.name:11} {statistics.median(found):>11,.0f} ({min(found):,.0f}-{max(found):,.0f}) frames/s"
    line += f"  {statistics.median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f}) x send"
    if delays:
        p50, p99 = zip(*delays, strict=True)
        line += f"  p50 {statistics.median(p50):.2f} ms  p99 {statistics.median(p99):.2f} ({min(p99):.2f}-{max(p99):.2f}) ms"
    print(line)


def main() -> None:
    """Command line: the benchmark, or (as `receive`) the process of its clients."""
    if sys.argv[1:2] == ["receive"]:
        port, path, clients, expected, mode = sys.argv[2:]
        uvloop.run(receive(int(port), path, int(clients), int(expected), delays=mode == "delays"))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=100, help="publishes per run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pace", type=float, default=20, help="publishes per second where delays are measured")
    options = parser.parse_args()
    show_machine("aiohttp", "aiohttp-sse", "uvloop")
    print(f"{options.clients} clients, {options.frames} publishes, {options.runs} runs: median (min-max)")
    uvloop.run(measure(options.clients, options.frames, options.runs, options.pace))


if __name__ == "__main__":
    main()
