"""How far a long work is: a bar with rate and time left on a terminal, a line now and then elsewhere; on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from terminalkit.display.output import Output
from terminalkit.display.table import duration

if TYPE_CHECKING:
    from rich.console import Console

FIRST_DRAWN = 1.0
"""Seconds after which the bar is shown, so that short work shows none."""
REDRAWN = 0.25
SIGN_OF_LIFE = 10.0
_WIDTH = 30


@attrs.frozen(kw_only=True)
class Rate:
    """How far a work is that began `seconds` ago at `begin`: `done` of `total`."""

    begin: int
    done: int
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        """Progress per second since the start."""
        return (self.done - self.begin) / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at that rate; None if there is no rate yet."""
        return max(0, self.total - self.done) / self.rate if self.rate > 0 else None

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return 1.0 if self.total <= 0 else min(1.0, self.done / self.total)

    def text(self, what: str, unit: str) -> str:
        """All of it in a line."""
        left = "" if self.left is None else f", {duration(self.left)} left"
        return f"{what}: {self.done:,} of {self.total:,} {unit}, {self.share:.0%}, {self.rate:,.0f}/s{left}"


@asynccontextmanager
async def bar(output: Output, what: str, unit: str, figures: Callable[[], tuple[int, int]]) -> AsyncIterator[None]:
    """Show how far `what` is until the block is left. `figures` gives what is done and the total, in `unit`s."""
    if not output.shows_progress:
        yield
        return
    begin, started = figures()[0], time.monotonic()

    def pace() -> Rate:
        done, total = figures()
        return Rate(begin=begin, done=done, total=total, seconds=time.monotonic() - started)

    console = output.progress_console
    showing = _say(output, what, unit, pace) if console is None else _draw(console, what, unit, pace)
    task = asyncio.create_task(showing)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _say(output: Output, what: str, unit: str, pace: Callable[[], Rate]) -> None:
    while True:
        await asyncio.sleep(SIGN_OF_LIFE)
        output.note(pace().text(what, unit))


async def _draw(console: Console, what: str, unit: str, pace: Callable[[], Rate]) -> None:
    from rich.live import Live  # noqa: PLC0415 - only for progress on a terminal
    from rich.text import Text  # noqa: PLC0415 - as above

    def drawn() -> Text:
        now = pace()
        full = round(_WIDTH * now.share)
        return Text(f"[{'#' * full}{'-' * (_WIDTH - full)}] {now.text(what, unit)}", no_wrap=True, overflow="ellipsis")

    await asyncio.sleep(FIRST_DRAWN)
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        try:
            while True:
                live.update(drawn(), refresh=True)
                await asyncio.sleep(REDRAWN)
        finally:
            live.update(drawn(), refresh=True)
