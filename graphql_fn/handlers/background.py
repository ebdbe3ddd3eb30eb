"""Awaiting from code that is not asynchronous: one event loop in a private thread, for the whole process.

Platforms call handlers in threads of their choice, several at a time. One loop for all of them is what keeps connections and
caches together, which belong to the loop that made them.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """The loop and its thread, started with the first call and ended with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, from any thread but the loop's own. Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._started()).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="graphql-fn", daemon=True)
                thread.start()
                atexit.register(_end, loop, thread)
            return self._loop


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


BACKGROUND = Background()
