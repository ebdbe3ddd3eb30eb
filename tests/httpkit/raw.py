"""Clients that no library would be: bytes on a socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs


@attrs.frozen
class Reply:
    """An answer as it came: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def parse(data: bytes) -> Reply:
    """Return the first answer in the bytes of a server."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Reply(int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, body)


async def send(port: int, data: bytes, *, within: float = 60) -> bytes:
    """Send bytes on a new connection; give what came back until the server closed it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(), within)
    finally:
        writer.close()


async def ask(port: int, head: str, body: bytes = b"", *, host: str = "127.0.0.1") -> Reply:
    """Send one request, on a new connection. `head`: the request line and header lines but Host and Content-Length."""
    host_line = f"Host: {host}\r\n" if host else ""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    first, _, rest = head.partition("\n")
    lines = "".join(f"{line}\r\n" for line in rest.split("\n") if line)
    message = f"{first} HTTP/1.1\r\n{host_line}{length}Connection: close\r\n{lines}\r\n".encode() + body
    return parse(await send(port, message))


@asynccontextmanager
async def deaf(port: int, request: bytes) -> AsyncIterator[socket.socket]:
    """A client that sends a request and then reads nothing, with a small receive buffer."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(sock, ("127.0.0.1", port))
        await loop.sock_sendall(sock, request)
        yield sock
    finally:
        sock.close()
