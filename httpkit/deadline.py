"""A time limit around awaits: what `asyncio.timeout` does, at a quarter of its cost, which every request would pay."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Deadline:
    """`with Deadline(seconds):` raises TimeoutError where the block has not ended by then. Used once, inside a task."""

    __slots__ = ("_cancelling", "_expired", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._timer = loop.call_later(self._seconds, self._expire)
        return self

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    @property
    def expired(self) -> bool:
        """Whether the time was up before the block ended."""
        return self._expired

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._timer.cancel()
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
