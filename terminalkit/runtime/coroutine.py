"""A command that runs as a coroutine, with modules that are imported when they are used."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from terminalkit.display.table import duration
from terminalkit.failure import OutOfTime, Stopped


def lazily(place: str) -> Callable[[], Any]:
    """Return a function that gives the object in a place, `module:NAME`."""
    module, _, name = place.partition(":")
    return lambda: getattr(import_module(module), name)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(work: Coroutine[Any, Any, int], *, timeout: float | None, busy: bool = False) -> int:
    """Run the coroutine to its end and return its exit code; `busy`: with the settings for work that reads much.

    Raises Stopped when SIGINT or SIGTERM came, OutOfTime after `timeout` seconds (None: no limit).
    """
    if not busy:
        return asyncio.run(_supervised(work, timeout))
    from terminalkit.runtime.event_loop import run_busy  # noqa: PLC0415 - slow

    return run_busy(_supervised(work, timeout))


async def _supervised(work: Coroutine[Any, Any, int], seconds: float | None) -> int:
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(number: int) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            task.cancel()
            await asyncio.wait([task])
        return task.result()
    except asyncio.CancelledError:
        if received:
            raise Stopped(received[0]) from None
        raise OutOfTime(f"not done within {duration(seconds or 0)}") from None
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
