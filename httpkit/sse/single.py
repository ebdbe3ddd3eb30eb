"""Event streams of single clients, such as a log that one client follows. `httpkit.sse.hub` has the streams for all clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog
from aiohttp import web

from httpkit.problems import Busy
from httpkit.server.protocol import when_gone
from httpkit.sse.response import TooManyStreams, begin

_log = structlog.get_logger(__name__)


class Streams:
    """Sends frames to the clients of this process, at most `most` at a time; a comment every `heartbeat` seconds.

    A client that does not read is disconnected by its connection (`httpkit.server.protocol`).
    """

    def __init__(self, *, most: int = 64, heartbeat: float = 15.0) -> None:
        self.most = most
        self._heartbeat = heartbeat
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def open(self) -> int:
        """How many clients follow something."""
        return len(self._open)

    def check(self) -> None:
        """Raise Busy or TooManyStreams if no further client can follow something now."""
        if self._closed:
            raise Busy("the server is ending; try again")
        if len(self._open) >= self.most:
            raise TooManyStreams(f"{self.most} clients follow something already; try again later")

    async def answer(self, request: web.Request, frames: AsyncGenerator[bytes, None]) -> web.StreamResponse:
        """Send these frames until they end or the client is gone; either way they are closed.

        Raises Busy, TooManyStreams, ClientGone.
        """
        self.check()
        response, _ = await begin(request, heartbeat=self._heartbeat)
        async with response:
            sending = asyncio.create_task(_send(response, frames))
            self._open.add(sending)
            try:
                with when_gone(request, sending.cancel):
                    await asyncio.wait({sending})
            finally:
                sending.cancel()
                self._open.discard(sending)
        if not sending.cancelled() and (error := sending.exception()) is not None:
            _log.error("an event stream ended early", path=request.path, exc_info=error)
        return response

    async def close(self, _: object = None) -> None:
        """End all streams; clients see a clean end. For `on_shutdown` of the application."""
        self._closed = True
        for sending in self._open:
            sending.cancel()


async def _send(response: web.StreamResponse, frames: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(frames):
        try:
            async for frame in frames:
                await response.write(frame)
        except ConnectionError:
            return  # it is gone
