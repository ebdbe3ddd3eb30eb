"""Waiting until the read model has reached a sequence: woken by the projector, without polling."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

from eventlog.support.timers import TimerQueue
from projections.errors import Behind


class PositionWaiters:
    """Waiters for sequences, and the position that has been reached."""

    def __init__(self) -> None:
        self.reached = 0
        self._failure: Exception | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._alarms: dict[float, TimerQueue] = {}
        self._given_up = 0

    @property
    def awaited(self) -> bool:
        """Whether a sequence is waited for."""
        return bool(self._waiting)

    def advance(self, sequence: int) -> None:
        """Wake the waiters of sequences up to `sequence`, which can be read now.

        It is lower than before if a projection restarts.
        """
        self.reached = sequence
        while self._waiting and self._waiting[0][0] <= sequence:
            _, _, future = heapq.heappop(self._waiting)
            if future.done():
                self._given_up -= 1
            else:
                future.set_result(None)

    def begin(self) -> None:
        """It may be reached again."""
        self._failure = None

    def fail(self, error: Exception) -> None:
        """No sequence will be reached any more: present and later waiters get `error`."""
        self._failure = error
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        self._given_up = 0

    async def wait(self, sequence: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the promise: Behind, in that time
        """Return when `sequence` is reached. Raises Behind after `timeout` seconds, or the error of `fail`."""
        if self.reached >= sequence:
            return
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (sequence, next(self._order), future))
        alarms = self._alarms.get(timeout)
        if alarms is None:
            alarms = self._alarms[timeout] = TimerQueue(timeout)
        number = alarms.set(lambda: self._expire(future, sequence, timeout))
        try:
            await future
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            alarms.clear(number)

    def _expire(self, future: asyncio.Future[None], sequence: int, timeout: float) -> None:
        if not future.done():
            text = f"the read model is at sequence {self.reached}, {sequence} was asked for and not reached within {timeout:g} s"
            future.set_exception(Behind(text))
            self._give_up()

    def _give_up(self) -> None:
        """Note a useless entry, and drop these entries once they are the majority: behind a stopped projector they gather."""
        self._given_up += 1
        if self._given_up * 2 > len(self._waiting):
            self._waiting = [entry for entry in self._waiting if not entry[2].done()]
            heapq.heapify(self._waiting)
            self._given_up = 0
