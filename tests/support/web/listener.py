"""A client of an event stream, written from the standard alone (WHATWG HTML, section 9.2): it shares nothing with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

import aiohttp

from httpkit.sse.stream import LAST_INDEX
from tests.support.waiting import wait_until


class Listener:
    """Follows an event stream while it is entered as a context, and reconnects with the last id that it saw.

    Inside the context the first connection is open: the listener misses no event that happens there. `ids` and `events` are the
    seen events, in order; `resets` counts the `reset` events. With `cut_after` the listener closes each connection after the
    number of events that it returns. With `after` it sees the events after this sequence of the log. Without it, events that
    happened just before may be among the first: a command is answered before its event is sent.
    """

    def __init__(self, url: str, *, cut_after: Callable[[], int] | None = None, after: int | None = None) -> None:
        self.url = url
        self.ids: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.resets = 0
        self.connections = 0
        self.connected = False
        self._cut_after = cut_after
        self._last = "" if after is None else f"{after}.{LAST_INDEX}"
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        running = self._running = asyncio.create_task(self._run())
        try:
            await wait_until(lambda: self.connections or running.done())
        except BaseException:
            running.cancel()
            raise
        if running.done():
            running.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        self._running.cancel()
        (ended,) = await asyncio.gather(self._running, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), f"the listener failed: {ended!r}"

    async def until_seen(self, number: int) -> None:
        """Wait until it has seen the given number of events. Raises AssertionError with the events that it has seen."""
        try:
            await wait_until(lambda: len(self.ids) >= number)
        except AssertionError as error:
            raise AssertionError(f"{len(self.ids)} of {number} events came from {self.url}: {self.events}") from error

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=2, sock_read=60)
        async with aiohttp.ClientSession(timeout=timeout, read_bufsize=2**20) as session:
            while True:
                try:
                    await self._follow(session)
                except (aiohttp.ClientError, TimeoutError, OSError):
                    await asyncio.sleep(0.05)
                finally:
                    self.connected = False

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        left = self._cut_after() if self._cut_after else None
        async with session.get(self.url, headers=headers) as answer:
            if answer.status != 200:
                await asyncio.sleep(0.05)
                return
            name, data, id_ = "", "", self._last
            async for raw in answer.content:
                line = raw.decode().rstrip("\n")
                field, _, value = line.partition(": ")
                if field == "id":
                    id_ = value
                elif field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif not line:
                    self._last = id_
                    if not self.connected:
                        self.connected, self.connections = True, self.connections + 1
                    if data:
                        self._dispatch(name, data)
                        left = None if left is None else left - 1
                    if left == 0:
                        return
                    name, data = "", ""

    def _dispatch(self, name: str, data: str) -> None:
        if name == "reset":
            self.resets += 1
            return
        self.ids.append(self._last)
        self.events.append((name, data))
