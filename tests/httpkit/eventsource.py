"""An EventSource after WHATWG HTML section 9.2: the parsing of events, and the id with which a client reconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import attrs


@attrs.frozen
class Event:
    name: str
    data: str
    id: str


@attrs.define
class EventSource:
    """A client of one stream; `last_id` lives on over connections. Heartbeats are counted, and not given."""

    http: aiohttp.ClientSession
    path: str = "/events"
    last_id: str = ""
    retry: int | None = None
    heartbeats: int = 0
    _pending: str = ""
    _response: aiohttp.ClientResponse | None = None

    @asynccontextmanager
    async def connected(self, **headers: str) -> AsyncIterator[EventSource]:
        """Be connected while the block runs: the head of the answer is there, and its first lines too."""
        if self.last_id:
            headers["Last-Event-ID"] = self.last_id
        async with self.http.get(self.path, headers=headers) as response:
            assert response.status == 200, await response.text()
            self._response, self._pending = response, ""
            yield self

    async def events(self) -> AsyncIterator[Event]:
        """The events until the server ends the stream."""
        assert self._response is not None
        name, data = "message", list[str]()
        async for raw in self._response.content:
            line = raw.decode().rstrip("\r\n")
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if line == "":
                if name == "heartbeat":
                    self.heartbeats += 1
                elif data:
                    yield Event(name, "\n".join(data), self.last_id)
                name, data = "message", []
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "id":
                self.last_id = value
            elif field == "retry":
                self.retry = int(value)

    async def take(self, count: int, *, within: float = 60) -> list[Event]:
        """The next events."""
        found: list[Event] = []
        async with asyncio.timeout(within):
            async for event in self.events():
                found.append(event)
                if len(found) == count:
                    break
        return found

    async def rest(self, *, within: float = 60) -> list[Event]:
        """All events until the server ends the stream."""
        async with asyncio.timeout(within):
            return [event async for event in self.events()]
