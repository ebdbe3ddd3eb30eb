"""Periodic work of two loops falls on the same moments, and never twice at once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.support.ticks import until_tick


class At(asyncio.SelectorEventLoop):
    """A loop with a fixed clock."""

    now = 0.0

    def time(self) -> float:
        return self.now


@given(st.floats(0, 1e6), st.sampled_from([0.5, 1.0, 4.0, 5.0, 10.0]))
def test_the_pause_ends_at_a_multiple_of_the_period_and_is_never_short(now: float, period: float) -> None:
    async def pause() -> float:
        return until_tick(period)

    loop = At()
    try:
        loop.now = now
        seconds = loop.run_until_complete(pause())
    finally:
        loop.close()
    assert 0.1 * period <= seconds <= 1.1 * period
    assert (now + seconds) / period == pytest.approx(round((now + seconds) / period), abs=1e-6)
