"""Nothing that a client does, or leaves undone, holds up the others: times, sizes, numbers of connections and requests."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress

import pytest
import structlog.testing
import uvloop

from httpkit.edge import Edge
from httpkit.server.serving import ListenAddress, ServerLimits
from httpkit.sse.stream import StreamSettings
from tests.httpkit.loops import on_uvloop
from tests.httpkit.raw import ask, deaf, parse, send
from tests.httpkit.shop import open_shop
from tests.support.pace import slowness, within
from tests.support.waiting import wait_until

QUICK = ServerLimits(idle=0.6, read=0.3, write=0.4, shutdown=1.0, lingering=0.2)
HEAD = b"POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"


async def closed_after(port: int, *parts: bytes, pause: float = 0.1) -> float:
    """Seconds until the server closes a connection that gets these bytes, one part after the other."""
    started = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reading = asyncio.create_task(reader.read())
    for part in parts:
        if reading.done():
            break
        writer.write(part)
        await asyncio.sleep(pause)
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):
            await reading
    writer.close()
    return time.monotonic() - started


@pytest.mark.real
@on_uvloop
async def test_a_head_that_comes_slowly_is_cut_off_at_the_read_limit() -> None:
    """The head would take four seconds."""
    async with open_shop(limits=ServerLimits(idle=60, read=0.3)) as shop:
        lines = [b"GET /things HTTP/1.1\r\n", *(b"X-%d: y\r\n" % number for number in range(80))]
        with within(1):
            assert await closed_after(shop.port, *lines, pause=0.05) > 0.25


@pytest.mark.real
@pytest.mark.parametrize("part", [b"G", b"GET /things HTT", b"GET /things HTTP/1.1\r\nHost: x\r\n"])
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_half_a_head_that_comes_with_the_connection_is_cut_off_at_the_read_limit(part: bytes, loop: str) -> None:
    """The bytes are there before the server has begun to wait for them."""

    async def half() -> None:
        async with open_shop(limits=ServerLimits(idle=30, read=0.3)) as shop:
            with socket.create_connection(("127.0.0.1", shop.port)) as client:
                client.sendall(part)  # before this loop has accepted the connection
                client.setblocking(False)
                started = time.monotonic()
                async with asyncio.timeout(20):
                    with suppress(ConnectionResetError):
                        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
                assert 0.25 < time.monotonic() - started < 5

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        runner.run(half())


@pytest.mark.real
@on_uvloop
async def test_the_read_limit_holds_for_later_requests_of_a_connection_too() -> None:
    async with open_shop(limits=ServerLimits(idle=30, read=0.3)) as shop:
        first = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
        with within(1.5):
            assert await closed_after(shop.port, first, b"GET /", b"things") > 0.35


@pytest.mark.real
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_body_in_several_reads_is_no_head_and_its_handler_may_take_longer_than_the_read_limit(loop: str) -> None:
    """A part of the body arrives before the task of the request has begun."""

    async def slow() -> None:
        async with open_shop(limits=ServerLimits(idle=30, read=0.2)) as shop:
            answer = await ask(shop.port, "POST /upload?seconds=0.6\nContent-Type: text/csv", b"a" * 900_000)
            assert answer.status == 200

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        runner.run(slow())


@pytest.mark.real
@on_uvloop
async def test_a_connection_that_says_nothing_is_closed_at_the_idle_limit() -> None:
    async with open_shop(limits=QUICK) as shop:
        for sent in ((), (b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",)):
            with within(2):
                assert await closed_after(shop.port, *sent) > 0.5


@pytest.mark.real
@on_uvloop
async def test_a_connection_answers_what_comes_whole_in_parts_and_together_in_order() -> None:
    body = b'{"name": "nail", "amount": 1}'
    post = b"POST /things HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    get = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"
    async with open_shop() as shop:
        reader, writer = await asyncio.open_connection("127.0.0.1", shop.port)

        async def answer() -> int:
            async with asyncio.timeout(20):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = head.lower().partition("content-length:")[2].partition("\r\n")[0]
                await reader.readexactly(int(length))
            return int(head.split()[1])

        for _ in range(2):
            writer.write(post + body)
            assert await answer() == 201
            writer.write(get % b"/things" + get % b"/nowhere" + post + body)
            assert [await answer() for _ in range(3)] == [200, 404, 201]
            writer.write(post + body[:5])
            await asyncio.sleep(0.05)  # in parts: if they come together all the same, the answer is the same
            writer.write(body[5:])
            assert await answer() == 201
        writer.close()


@pytest.mark.real
@on_uvloop
async def test_a_body_that_does_not_come_is_408_and_the_connection_ends() -> None:
    async with open_shop(limits=QUICK, body_deadline=0.3) as shop:
        reply = parse(await send(shop.port, HEAD + b'{"name"'))
        assert (reply.status, reply.json["status"], reply.headers["connection"]) == (408, 408, "close")


@pytest.mark.real
@on_uvloop
async def test_clients_that_do_not_finish_their_bodies_do_not_hold_up_the_end() -> None:
    """Neither clients within their time, nor clients that continue to send after the answer 408."""
    async with AsyncExitStack() as serving, AsyncExitStack() as clients:
        shop = await serving.enter_async_context(open_shop(limits=ServerLimits(shutdown=0.5, lingering=0.2), body_deadline=0.3))
        answered = []
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", shop.port)
            clients.callback(writer.close)
            writer.write(HEAD + b"{")
            answered.append(asyncio.create_task(reader.readuntil(b"\r\n\r\n")))
        assert all(b" 408 " in head for head in await asyncio.wait_for(asyncio.gather(*answered), 30))
        for _ in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", shop.port)
            clients.callback(writer.close)
            writer.write(HEAD + b"{")
        with within(2):
            await serving.aclose()


@pytest.mark.real
@on_uvloop
async def test_requests_that_are_sent_without_reading_the_answers_are_not_taken_in_without_end() -> None:
    async with open_shop(limits=ServerLimits(write=1.0)) as shop:
        _, writer = await asyncio.open_connection("127.0.0.1", shop.port, limit=1024)
        many = b"GET /things HTTP/1.1\r\nHost: x\r\n\r\n" * 2000

        async def flood() -> None:
            for _ in range(5000):
                writer.write(many)
                await writer.drain()

        async with asyncio.timeout(60):
            with pytest.raises(ConnectionError):
                await flood()
        writer.transport.abort()
        assert (await ask(shop.port, "GET /things")).status == 200


def test_the_limits_are_those_that_are_documented() -> None:
    limits, edge, streams = ServerLimits(), Edge(title="", version=""), StreamSettings()
    assert (limits.read, limits.write, limits.idle, limits.shutdown, limits.lingering) == (15, 15, 60, 30, 2)
    assert (edge.max_body, edge.body_deadline, edge.time_limit, edge.max_in_flight) == (1024**2, 15, 30, 256)
    assert (streams.max_clients, streams.heartbeat, streams.retry) == (200, 15, 2)


@pytest.mark.real
@on_uvloop
async def test_a_body_that_is_cut_off_leaves_nothing_behind_and_is_no_error() -> None:
    async with open_shop() as shop:
        with structlog.testing.capture_logs() as logs:
            _, writer = await asyncio.open_connection("127.0.0.1", shop.port)
            writer.write(HEAD + b'{"name"')
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            await wait_until(lambda: [line["status"] for line in logs if line["event"] == "request"] == [499])
        assert "error" not in {line["log_level"] for line in logs}
        assert (await ask(shop.port, "GET /things")).status == 200
        assert shop.shop.made == 0


@pytest.mark.real
@on_uvloop
async def test_200_half_open_heads_and_50_slow_bodies_do_not_disturb_others() -> None:
    """Fault F12."""
    async with open_shop(limits=ServerLimits(idle=2, read=1), body_deadline=1) as shop, AsyncExitStack() as stack:
        slow = []
        for number in range(250):
            reader, writer = await asyncio.open_connection("127.0.0.1", shop.port)
            stack.callback(writer.close)
            writer.write(b"GET /things HTTP/1.1\r\nX: " if number < 200 else HEAD)
            slow.append(reader)
        delays = []
        for _ in range(50):
            started = time.monotonic()
            assert (await ask(shop.port, "GET /things")).status == 200
            delays.append(time.monotonic() - started)
        assert sorted(delays)[-2] < 0.25 * slowness()
        async with asyncio.timeout(20):
            await asyncio.gather(*(reader.read() for reader in slow))


@pytest.mark.real
@on_uvloop
async def test_a_client_that_does_not_take_its_answer_is_cut_off_at_the_write_limit() -> None:
    async with open_shop(limits=QUICK) as shop:
        request = b"POST /do/large HTTP/1.1\r\nHost: x\r\n\r\n"
        with structlog.testing.capture_logs() as logs:
            async with deaf(shop.port, request):
                await wait_until(lambda: "client does not read" in [line["event"] for line in logs])
        assert (await ask(shop.port, "GET /things")).status == 200


@pytest.mark.real
@on_uvloop
async def test_connections_beyond_the_limit_are_told_503() -> None:
    async with open_shop(limits=ServerLimits(max_connections=3)) as shop, AsyncExitStack() as stack:
        writers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", shop.port)
            stack.callback(writer.close)
            writers.append(writer)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        reply = parse(await send(shop.port, b""))
        assert (reply.status, reply.headers["retry-after"], reply.json["message"]) == (
            503,
            "1",
            "too many connections; try again",
        )
        writers[-1].close()

        async def is_served() -> bool:
            return (await ask(shop.port, "GET /livez")).status == 200

        await wait_until(is_served)


@pytest.mark.real
@on_uvloop
async def test_requests_beyond_the_cap_are_503_while_probes_are_answered() -> None:
    async with open_shop(max_in_flight=2) as shop:
        held = [asyncio.create_task(ask(shop.port, "POST /do/hold")) for _ in range(2)]
        await asyncio.wait_for(shop.shop.entered.wait(), 60)

        async def both_are_held() -> bool:
            return b"http_requests_in_flight 2.0" in (await ask(shop.port, "GET /metrics")).body

        await wait_until(both_are_held)
        reply = await ask(shop.port, "GET /things")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert (await ask(shop.port, "GET /readyz")).status == 200
        shop.shop.release.set()
        assert [(await task).status for task in held] == [200, 200]
        assert (await ask(shop.port, "GET /things")).status == 200


@pytest.mark.real
@on_uvloop
async def test_a_handler_that_takes_too_long_is_503() -> None:
    async with open_shop(time_limit=0.2) as shop:
        with within(10):
            reply = await ask(shop.port, "POST /do/sleep?seconds=30")
        assert (reply.status, reply.json["type"]) == (503, "urn:problem:timed-out")


@pytest.mark.real
@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"POST /things HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 9000 + b"\r\n\r\n",
        b"GET /" + b"y" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + b"\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\nX\x00: y\r\n\r\n",
        b"GET /things HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_sound_http_is_400_as_a_problem_document(data: bytes) -> None:
    @on_uvloop
    async def scenario() -> None:
        async with open_shop(limits=QUICK) as shop:
            reply = parse(await send(shop.port, data))
            assert (reply.status, reply.json["message"]) == (400, "the request is not well-formed HTTP")

    scenario()


@pytest.mark.real
@on_uvloop
async def test_an_expectation_that_cannot_be_met_is_417_as_a_problem_document() -> None:
    async with open_shop() as shop:
        reply = await ask(shop.port, "POST /things\nExpect: tea", b"{}")
        assert (reply.status, reply.json["status"]) == (417, 417)


@pytest.mark.real
@on_uvloop
async def test_shutdown_answers_what_was_begun_and_takes_nothing_new() -> None:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(open_shop())
        held = asyncio.create_task(ask(shop.port, "POST /do/hold"))
        await asyncio.wait_for(shop.shop.entered.wait(), 60)
        closing = asyncio.create_task(stack.aclose())

        async def is_closed() -> bool:
            try:
                await ask(shop.port, "GET /livez")
            except OSError:
                return True
            return False

        await wait_until(is_closed)
        assert not closing.done()
        shop.shop.release.set()
        assert (await held).status == 200
        await asyncio.wait_for(closing, 30)


@pytest.mark.real
@on_uvloop
async def test_shutdown_does_not_wait_longer_than_its_limit() -> None:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(open_shop(limits=ServerLimits(shutdown=0.3)))
        held = asyncio.create_task(ask(shop.port, "POST /do/hold"))
        await asyncio.wait_for(shop.shop.entered.wait(), 60)
        with within(8):
            await stack.aclose()
        with pytest.raises((OSError, IndexError)):
            await held


PROGRAM = """
import asyncio, sys
from terminalkit.coroutine import run_busy
from httpkit.server.serving import termination
from tests.httpkit.shop import open_shop

async def main():
    with termination() as ended:
        async with open_shop() as shop:
            print(shop.address.url, flush=True)
            name = (await ended).name
    print("ended by", name, flush=True)

run_busy(main())
"""


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_gracefully(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."})
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"http://127.0.0.1:")
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out.splitlines()[-1]) == (0, f"ended by {number.name}".encode())


def test_an_address_is_shown_as_a_browser_takes_it() -> None:
    assert [ListenAddress(host, 80).url for host in ("127.0.0.1", "0.0.0.0", "::", "::1")] == [
        "http://127.0.0.1:80",
        "http://127.0.0.1:80",
        "http://[::1]:80",
        "http://[::1]:80",
    ]
