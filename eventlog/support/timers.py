"""Timers and tasks: many timers in one, time limits, pauses between tries, work in ticks, and a task that runs during another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from math import inf
from types import TracebackType
from typing import Any, Self, TypeVar

_RESOLUTION = 0.001
"""Seconds by which the loop's clock may be behind its timers."""


class TimerQueue:
    """Calls back entries that are not cleared in time (seconds). Setting and clearing cost a tenth of the loop's own timers.

    All of them are of one length, so the first one set is the first one due: the loop's timer stands for that one alone. Belongs
    to the loop in which it is first used.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """How long they are."""
        self._numbers = count()
        self._pending: dict[int, tuple[float, Callable[[], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, callback: Callable[[], object]) -> int:
        """Schedule a callback. Return a number that cancels it. This needs a running event loop."""
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        due = loop.time() + self.seconds
        self._pending[number] = (due, callback)
        if self._timer is None:
            self._timer = loop.call_at(due, self._ring)
        return number

    def clear(self, number: int) -> None:
        """Cancel the call for that number; it may have been made by now."""
        self._pending.pop(number, None)

    def limit(self) -> Deadline:
        """Return a time limit: `with timers.limit() as deadline:`."""
        return Deadline(self)

    def _ring(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._pending:
            number, (due, callback) = next(iter(self._pending.items()))
            if due > loop.time() + _RESOLUTION:
                self._timer = loop.call_at(due, self._ring)
                return
            del self._pending[number]
            callback()


class Deadline:
    """Raises TimeoutError where its block has not ended in time. Used once, inside a task."""

    __slots__ = ("_cancelling", "_number", "_task", "_timers", "expired")

    def __init__(self, timers: TimerQueue) -> None:
        self._timers = timers
        self.expired = False
        """Whether the time was up before the block ended."""

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._number = self._timers.set(self._expire)
        return self

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._timers.clear(self._number)
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error


class Backoff:
    """The pauses between tries, in seconds: `first`, then doubled each time, up to `longest`.

    Each is drawn between half of that and all of it: tasks that wait for the same thing do not come back at the same moment.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.next = first
        """The most seconds of the next pause."""

    @property
    def is_first(self) -> bool:
        """Whether the next pause is the first one."""
        return self.next == self._first

    def begin(self) -> None:
        """A try was successful: the next pause is the first one again."""
        self.next = self._first

    async def pause(self, most: float = inf) -> None:
        """Wait until the next try, for `most` seconds at most."""
        seconds = min(self.next * random.uniform(0.5, 1), max(most, 0.0))  # noqa: S311 - jitter, not a secret
        self.next = min(2 * self.next, self._longest)
        await asyncio.sleep(seconds)


_SOON = 0.1


def until_tick(period: float) -> float:
    """Return the seconds until the clock of the event loop, which all processes share, is at a multiple of `period` seconds.

    It is from 0.1 to 1.1 periods, so that work that began a little late is not repeated at once.
    """
    pause = period - asyncio.get_running_loop().time() % period
    return pause if pause >= _SOON * period else pause + period


async def tick(period: float, early: asyncio.Event, *, after: float = 0.0) -> None:
    """Wait until a tick of `period` seconds, or until `after` seconds after `early` is set, if that is sooner."""
    with suppress(TimeoutError):
        async with asyncio.timeout(until_tick(period)):
            await early.wait()
            await asyncio.sleep(after)


T = TypeVar("T")


@asynccontextmanager
async def during(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine during the block, and cancel it at the end. An error of the coroutine is raised after the block."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def until_one_ends(*works: Coroutine[Any, Any, Any]) -> Sequence[asyncio.Task[Any]]:
    """Run coroutines until one of them ends, and cancel the others. The tasks of all of them are returned, and have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return tasks
