"""A question about the state of the process, with a bound on the wait for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from httpkit.errors import HttpkitError


class Unanswered(HttpkitError):
    """A question about the state of the process is not answered in time."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class BoundedQuestion:
    """Asks a function, at most once at a time, and waits no longer than `bound` seconds for its answer.

    A function that is cancelled may take long to end, because it tells a server that hangs. A caller does not wait for that end.
    Until then, each question has the same result: no answer.
    """

    def __init__(self, function: Callable[[], Awaitable[object]], bound: float) -> None:
        self._function = function
        self._bound = bound
        self._task: asyncio.Task[object] | None = None
        self._begun = 0.0
        self._askers = 0

    async def ask(self) -> object:
        """Return the answer of the function. Raises what the function raises, and Unanswered."""
        while True:
            task = self._task or self._begin()
            await self._wait(task)
            if not task.done():
                raise Unanswered(self._silence())
            if not task.cancelled():
                return task.result()
            if not task.cancelling():
                raise Unanswered("it was cut off")
            # Its other callers were cancelled, and it with them: ask it again.

    def _begin(self) -> asyncio.Task[object]:
        self._begun = asyncio.get_running_loop().time()
        task = self._task = asyncio.create_task(self._run())
        task.add_done_callback(self._end)
        return task

    async def _run(self) -> object:
        return await self._function()

    async def _wait(self, task: asyncio.Task[object]) -> None:
        self._askers += 1
        try:
            await asyncio.wait({task}, timeout=max(0.0, self._bound - self._elapsed()))
        finally:
            self._askers -= 1
            if not self._askers and not task.cancelling():
                task.cancel()

    def _end(self, task: asyncio.Task[object]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # else the event loop reports it if no caller is left

    def _silence(self) -> str:
        seconds = self._elapsed()
        return f"no answer within {self._bound:g} s" if seconds < self._bound + 1 else f"no answer for {seconds:.0f} s"

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._begun
