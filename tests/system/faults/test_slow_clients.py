"""Slow and silent clients of the three services: each is let go in the documented time, and disturbs no other client."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import EmbeddedServer
from tests.support import ROOT
from tests.support.pace import within

pytestmark = pytest.mark.real

READ, IDLE = 1.0, 2.5
PATHS = {"gctd": "/api/repos", "pantry": "/api/v1/movements", "graphql_fn": "/function/graphql"}


@asynccontextmanager
async def served(module: str, nats: str, directory: Path) -> AsyncIterator[int]:
    """The port of a service with short limits."""
    start = {"gctd": "GCTD_", "pantry": "PANTRY_SERVER_", "graphql_fn": "GRAPHQL_"}[module]
    mark = "" if module == "pantry" else "_"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        f"{start}HOST": "127.0.0.1",
        f"{start}PORT": "0",
        f"{start}READ{mark}TIMEOUT": f"{READ}s",
        f"{start}IDLE{mark}TIMEOUT": f"{IDLE}s",
        "GCTD_NATS_URL": nats,
        "PANTRY_NATS_URL": nats,
        "GCTD_DATABASE_URL": f"sqlite:{directory / 'gctd.db'}",
        "PANTRY_DATABASE_URL": f"sqlite:{directory / 'pantry.db'}",
    }
    with (directory / f"{module}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *attached_command([sys.executable, "-m", module, "serve"]),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        assert line.startswith("listening on "), (directory / f"{module}.log").read_text()[-2000:]
        try:
            yield int(line.rpartition(":")[2])
        finally:
            process.terminate()
            await process.wait()


async def closed_after(port: int, first: bytes, drop: bytes) -> tuple[float, bytes]:
    """Seconds until the server closes a connection that sends `first`, then `drop` five times a second; and its answer."""
    started = time.monotonic()  # before the server can count
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reading = asyncio.create_task(_received(reader))
    writer.write(first)
    while drop and not reading.done():
        writer.write(drop)
        await asyncio.wait({reading}, timeout=0.2)
    answer = await reading
    writer.close()
    return time.monotonic() - started, answer


async def _received(reader: asyncio.StreamReader) -> bytes:
    """The answer up to the end of the connection; a reset after it, by a late byte, does not discard it."""
    answer = b""
    with suppress(ConnectionResetError):
        while part := await reader.read(4096):
            answer += part
    return answer


@pytest.mark.parametrize("module", list(PATHS))
async def test_each_kind_of_slow_client_is_let_go_in_its_time(module: str, tmp_path: Path) -> None:
    head = f"POST {PATHS[module]} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"
    async with EmbeddedServer(tmp_path / "nats") as nats, served(module, nats.url, tmp_path) as port:
        with within(15):
            silent, half, slow, body, after = await asyncio.gather(
                closed_after(port, b"", b""),
                closed_after(port, b"GET /livez HT", b""),
                closed_after(port, b"GET /livez HTTP/1.1\r\nX-A: ", b"a"),
                closed_after(port, f"{head}\r\n".encode(), b" "),
                closed_after(port, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
            )
    assert silent[0] >= IDLE - 0.1
    assert after[0] >= IDLE - 0.1
    assert (silent[1], half[1], slow[1]) == (b"", b"", b"")
    for seconds, _ in (half, slow, body):
        assert READ - 0.1 <= seconds < IDLE, "before the time of a silent connection"
    assert body[1].startswith(b"HTTP/1.1 408 ")
    assert after[1].startswith(b"HTTP/1.1 200 ")
