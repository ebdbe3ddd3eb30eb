"""Waiting for a condition with a bound, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from tests.support.pace import slowness

T = TypeVar("T")


@overload
async def wait_until(condition: Callable[[], Awaitable[T]], timeout: float = 60.0, every: float = 0.005) -> T: ...  # noqa: ASYNC109 - see below


@overload
async def wait_until(condition: Callable[[], T], timeout: float = 60.0, every: float = 0.005) -> T: ...  # noqa: ASYNC109 - see below


async def wait_until(condition: Callable[[], Any], timeout: float = 60.0, every: float = 0.005) -> Any:  # noqa: ASYNC109 - asyncio.timeout around it could not name the condition
    """Return the first true result of `condition` (plain or async).

    Raises AssertionError after `timeout` seconds, multiplied by the slowness of a busy machine.
    """
    began = time.monotonic()
    end = began + timeout
    while True:
        result = condition()
        found = await result if inspect.isawaitable(result) else result
        if found:
            return found
        if time.monotonic() >= end:
            end = began + timeout * slowness()
            assert time.monotonic() < end, f"not true within {timeout:g} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(every)
