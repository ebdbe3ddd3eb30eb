"""A time limit around awaits, like `asyncio.timeout` at a tenth of the cost for each request."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from eventlog.support.timers import TimerQueue


class TimeoutPool:
    """Time limits of one length: `with deadlines.begin() as deadline:`."""

    def __init__(self, seconds: float) -> None:
        self._alarms = TimerQueue(seconds)

    def begin(self) -> Deadline:
        """One of them."""
        return Deadline(self._alarms)


class Deadline:
    """Raises TimeoutError where its block has not ended in time. Used once, inside a task."""

    __slots__ = ("_alarms", "_cancelling", "_number", "_task", "expired")

    def __init__(self, alarms: TimerQueue) -> None:
        self._alarms = alarms
        self.expired = False
        """Whether the time was up before the block ended."""

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._number = self._alarms.set(self._expire)
        return self

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._alarms.clear(self._number)
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
