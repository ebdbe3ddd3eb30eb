"""Periodic work of all processes of a machine at the same moments: a processor that sleeps is woken once for all of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

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
