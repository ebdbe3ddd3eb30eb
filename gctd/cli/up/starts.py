"""The start of the parts of a system, as a user sees it: starting parts, waiting times, and durations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from eventlog import during
from gctd.cli.up.console import Console

REDRAWN = 0.25
"""Seconds between two drawings of the line on a terminal."""
SIGN_OF_LIFE = 10.0
"""Seconds between two lines off a terminal."""


class Starts:
    """Shows the parts that start on a console. `why(name)` is the reason why a part is not ready; empty: unknown."""

    def __init__(self, console: Console, why: Callable[[str], str]) -> None:
        self._console = console
        self._why = why
        self._since: dict[str, float] = {}

    @asynccontextmanager
    async def of(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Show that these parts start, and until the block ends the parts that are not ready yet."""
        self._console.say(f"starting {', '.join(names)}")
        self._since |= dict.fromkeys(names, time.monotonic())
        async with during(self._tick()):
            try:
                yield
            finally:
                self._since = {}
                self._console.draw("")

    def ready(self, name: str) -> None:
        """Show that a part is ready."""
        if (since := self._since.pop(name, None)) is not None:
            self._console.say(f"{name} is ready: {time.monotonic() - since:.1f} s")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(REDRAWN if self._console.draws else SIGN_OF_LIFE)
            if not self._since:
                continue
            if self._console.draws:
                self._console.draw(self._waiting())
            else:
                self._console.say(self._waiting())

    def _waiting(self) -> str:
        seconds = time.monotonic() - min(self._since.values())
        names = (f"{name} ({why})" if (why := self._why(name)) else name for name in self._since)
        return f"waiting for {', '.join(names)} ... {seconds:.0f} s"
