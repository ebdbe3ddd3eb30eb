"""Loads by key, put together: look-ups of many resolvers at the same moment are one statement.

It replaces aiodataloader: keys wait until no more of them come, not for one turn of the event loop, so that a long list can be
worked on with turns for others in between, and still is one look-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from projections import MOST_KEYS

AT_ONCE = 25
"""Objects that are worked on until others get a turn of the event loop."""
_QUIET = 3
"""Turns without further keys after which the waiting keys are looked up."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BatchLoader(Generic[K, V]):
    """Loads values by key for one request, each key once. `fetch` returns the existing values of many keys.

    `rests`: whether the request waits for a turn of the event loop, after which it may bring further keys.
    """

    def __init__(self, fetch: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], rests: Callable[[], bool]) -> None:
        self._fetch = fetch
        self._rests = rests
        self._known: dict[K, asyncio.Future[V | None]] = {}
        self._waiting: list[K] = []
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def load(self, key: K) -> asyncio.Future[V | None]:
        """The value of a key, None if there is none. It raises what `fetch` raises."""
        known = self._known.get(key)
        if known is None:
            loop = asyncio.get_running_loop()
            known = self._known[key] = loop.create_future()
            if not self._waiting:
                loop.call_soon(self._look, loop, 0, 0)
            self._waiting.append(key)
        return known

    async def close(self) -> None:
        """Give up the look-ups under way, and return when their statements have ended."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _look(self, loop: asyncio.AbstractEventLoop, seen: int, quiet: int) -> None:
        """Ask, once some turns of the loop have brought no further keys."""
        if self._closed:
            return
        waiting = len(self._waiting)
        quiet = 0 if waiting > seen or self._rests() else quiet + 1
        if quiet < _QUIET:
            loop.call_soon(self._look, loop, waiting, quiet)
            return
        keys, self._waiting = self._waiting, []
        for start in range(0, len(keys), MOST_KEYS):
            task = loop.create_task(self._ask(keys[start : start + MOST_KEYS]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, keys: Sequence[K]) -> None:
        futures = [self._known[key] for key in keys]
        try:
            found = await self._fetch(keys)
        except Exception as error:  # noqa: BLE001 - each waiting load raises it
            for future in futures:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # a request that was given up looks at it no more
            return
        for number, (key, future) in enumerate(zip(keys, futures, strict=True), start=1):
            if not future.done():
                future.set_result(found.get(key))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
