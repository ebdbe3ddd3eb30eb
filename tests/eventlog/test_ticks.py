"""Periodic work of two loops falls on the same moments, never twice at once, and can be called earlier."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.support.timers import tick, until_tick
from tests.support.log.virtual_time import VirtualTimeLoop

T = TypeVar("T")
PERIODS = st.sampled_from([0.5, 1.0, 4.0, 5.0, 10.0])


def on_virtual_clock(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that runs without waiting for real time."""
    loop = VirtualTimeLoop(seed=1)
    try:
        result: T = loop.run_until_complete(work)
        return result
    finally:
        loop.close()


@given(st.floats(0, 1e6), PERIODS)
def test_the_pause_ends_at_a_multiple_of_the_period_and_is_never_short(now: float, period: float) -> None:
    async def pause() -> float:
        await asyncio.sleep(now)
        return until_tick(period)

    seconds = on_virtual_clock(pause())
    assert 0.1 * period <= seconds <= 1.1 * period
    assert (now + seconds) / period == pytest.approx(round((now + seconds) / period), abs=1e-6)


@given(st.floats(0, 100), st.floats(0, 20), st.floats(0, 20), PERIODS)
def test_a_tick_comes_at_its_moment_or_soon_after_a_call(begin: float, called: float, after: float, period: float) -> None:
    async def waited() -> tuple[float, float]:
        loop, early = asyncio.get_running_loop(), asyncio.Event()
        await asyncio.sleep(begin)
        loop.call_later(called, early.set)
        began, regular = loop.time(), until_tick(period)
        await tick(period, early, after=after)
        return loop.time() - began, regular

    seconds, regular = on_virtual_clock(waited())
    assert seconds == pytest.approx(min(regular, called + after), abs=1e-6)
