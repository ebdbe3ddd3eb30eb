"""A client of an event stream, written from the standard alone (WHATWG HTML, section 9.2): it shares nothing with ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp


class Listener:
    """Follows an event stream and comes back with the last id that it saw, for as long as `run` runs.

    `ids` and `events` are what it saw, in order; `resets` counts the times that it was told to start anew.
    """

    def __init__(self, url: str, *, cut_after: Callable[[], int] | None = None) -> None:
        self.url = url
        self.ids: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.resets = 0
        self.connections = 0
        self.connected = False
        self._cut_after = cut_after
        self._last = ""

    async def run(self) -> None:
        """Follow until cancelled. With `cut_after` each connection is cut off after so many events."""
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
