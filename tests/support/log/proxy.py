"""A TCP proxy before a nats-server that loses answers, cuts and stalls connections at chosen moments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Sent:
    """Takes what a client sends apart into lines and messages (PUB, HPUB) of the NATS client protocol."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the parts that are complete with these bytes, each with its subject (empty for a part other than a message)."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n")) >= 0:
            words = self._buffer[:end].split()
            size, subject = end + 2, b""
            if words[0].upper() in {b"PUB", b"HPUB"}:
                size, subject = size + int(words[-1]) + 2, words[1]
            if len(self._buffer) < size:
                break
            part, self._buffer = self._buffer[:size], self._buffer[size:]
            yield part, subject


class Proxy:
    """Forwards connections to a server. One fault is armed at a time, it strikes once:

    `lose_answers(n)`: message n of the client's and all before it reach the server; from then on the server's answers are
    swallowed, and when an acknowledgement has been, the connection is cut. `cut_before(n)`: the connection is cut when message n
    is about to be sent. `lose_message(n)`: message n does not reach the server, everything else does. `struck` is set when the
    fault has struck. Messages count from the arming; only those to subjects that begin with `subjects` do.
    """

    def __init__(self, url: str, subjects: str = "") -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._subjects = subjects.encode()
        self.struck = asyncio.Event()
        self.open = asyncio.Event()
        """New connections wait until this is set; existing ones stay."""
        self.open.set()
        self.flowing = asyncio.Event()
        """While this is not set, the connection stalls without forwarding a byte."""
        self.flowing.set()
        self.url = ""
        self._count = 0
        self._lose_after = self._cut_before = self._lose = 0
        self._swallowing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def lose_answers(self, after: int) -> None:
        """Arm: see the class."""
        self._arm()
        self._lose_after = after

    def cut_before(self, message: int) -> None:
        """Arm: see the class."""
        self._arm()
        self._cut_before = message

    def lose_message(self, message: int) -> None:
        """Arm: see the class."""
        self._arm()
        self._lose = message

    def _arm(self) -> None:
        self._count = self._lose_after = self._cut_before = self._lose = 0
        self._swallowing = False
        self.struck.clear()

    def cut(self) -> None:
        """End all connections. Bytes that the client had sent are delivered first."""
        for writer in self._writers:
            writer.close()

    @classmethod
    @asynccontextmanager
    async def before(cls, url: str, subjects: str = "") -> AsyncIterator[Proxy]:
        """A proxy to a server, at its own `url`."""
        proxy = cls(url, subjects)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            server.close()
            proxy.cut()
            for task in proxy._tasks:
                task.cancel()
            if proxy._tasks:
                await asyncio.wait(proxy._tasks)
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            await self.open.wait()
            answers, upstream = await asyncio.open_connection(*self._target)
            self._writers.add(upstream)
            halves = {
                asyncio.create_task(self._forward(reader, upstream)),
                asyncio.create_task(self._return(answers, writer)),
            }
            try:
                await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for half in halves:
                    half.cancel()
                await asyncio.wait(halves)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, upstream):
                if end is not None:
                    self._writers.discard(end)
                    end.close()
                    with suppress(OSError):
                        await end.wait_closed()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
        sent = Sent()
        with suppress(OSError):
            while data := await reader.read(65536):
                await self.flowing.wait()
                for part, subject in sent.feed(data):
                    counted = bool(subject) and subject.startswith(self._subjects)
                    self._count += counted
                    if counted and self._count == self._cut_before:
                        self._cut_before = 0
                        self.struck.set()
                        await upstream.drain()
                        return
                    if counted and self._count == self._lose:
                        self._lose = 0
                        self.struck.set()
                        continue
                    if counted and self._count == self._lose_after:
                        self._lose_after, self._swallowing = 0, True
                    upstream.write(part)
                await upstream.drain()

    async def _return(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await answers.read(65536):
                await self.flowing.wait()
                if not self._swallowing:
                    writer.write(data)
                    await writer.drain()
                elif b'"stream"' in data:
                    self._swallowing = False
                    self.struck.set()
                    return


__all__ = ["Proxy"]
