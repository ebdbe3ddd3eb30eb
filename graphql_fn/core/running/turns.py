"""Turns of the event loop for long work: it is done in pieces, and a turn has one piece, however many requests have such work."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

PIECE = 0.001
"""Seconds of work after which other requests get a turn of the event loop."""

_Line = deque["asyncio.Future[None]"]


class RequestTimeUp(BaseException):
    """The time of a request is over. It is no Exception, which the engine would make an error of one field."""


class Turns:
    """The turns of the work on one request, which ends at `deadline`. `until` is the end of the present piece of it.

    Both are times of `time.monotonic`. The work looks at `until`, and calls `rest` when that is over. `resting` is the number of
    pieces of the work that wait for a turn.
    """

    __slots__ = ("deadline", "resting", "until")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.resting = 0
        self.begin()

    def begin(self) -> None:
        """Begin a piece of work: after any wait."""
        self.until = time.monotonic() + PIECE

    async def rest(self) -> None:
        """Let other requests have their turn, and begin a piece of work after that. Raises OutOfTime."""
        if time.monotonic() > self.deadline:
            raise RequestTimeUp
        self.resting += 1
        try:
            await _turn()
        finally:
            self.resting -= 1
        self.begin()

    async def wait_for(self, running: Awaitable[T]) -> T:
        """The result, if it is there in time. Raises OutOfTime."""
        limit = asyncio.timeout(self.deadline - time.monotonic())
        try:
            async with limit:
                return await running
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise RequestTimeUp from error
        finally:
            del running  # its error refers to this frame: only the collector of cycles could free them


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
"""The pieces of work that wait for a turn of each event loop."""


def _turn() -> asyncio.Future[None]:
    """A future that is done in a turn of the event loop without another piece of work."""
    loop = asyncio.get_running_loop()
    line = _lines.setdefault(loop, deque())
    future = loop.create_future()
    if not line:
        loop.call_soon(_give, loop, line)
    line.append(future)
    return future


def _give(loop: asyncio.AbstractEventLoop, line: _Line) -> None:
    """Give the next turn to the first that waits and was not cancelled."""
    while line:
        first = line.popleft()
        if not first.done():
            first.set_result(None)
            break
    if line:
        loop.call_soon(_give, loop, line)
