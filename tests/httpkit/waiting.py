"""Waiting for a condition, within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], object], *, within: float = 20) -> None:
    """Wait until a condition holds. Raises TimeoutError."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def until_async(condition: Callable[[], Awaitable[object]], *, within: float = 20) -> None:
    """The same for a condition that has to be asked for."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.02)
