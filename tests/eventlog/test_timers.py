"""Timers, work in ticks, and a task that runs during another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.support.timers import Backoff, TimerQueue, during, tick, until_tick
from tests.support.log.virtual_time import VirtualTimeLoop
from tests.support.waiting import wait_until


async def test_what_is_not_cleared_rings_in_order_and_what_is_cleared_never() -> None:
    timers = TimerQueue(0.02)
    rung: list[str] = []
    timers.set(lambda: rung.append("first"))
    cleared = timers.set(lambda: rung.append("cleared"))
    timers.set(lambda: rung.append("second"))
    timers.clear(cleared)
    await asyncio.sleep(0.01)
    timers.set(lambda: rung.append("last"))
    await wait_until(lambda: len(rung) == 3)
    assert rung == ["first", "second", "last"]


async def test_one_that_is_set_after_all_have_rung_rings_too() -> None:
    timers = TimerQueue(0.01)
    for _ in range(2):
        rung = asyncio.Event()
        timers.set(rung.set)
        async with asyncio.timeout(60):
            await rung.wait()


async def test_none_rings_before_its_time() -> None:
    loop = asyncio.get_running_loop()
    timers, rung = TimerQueue(0.05), asyncio.Event()
    timers.clear(timers.set(rung.set))
    await asyncio.sleep(0.03)
    began = loop.time()
    timers.set(rung.set)
    async with asyncio.timeout(60):
        await rung.wait()
    assert loop.time() - began >= 0.045


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


async def test_work_is_cancelled_and_has_ended_after_the_block() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async with during(work()) as task:
        await asyncio.sleep(0)
    assert (ended.is_set(), task.cancelled()) == (True, True)


async def test_an_error_of_the_work_is_raised_after_the_block() -> None:
    async def fail() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        async with during(fail()) as task:
            await asyncio.wait({task})


async def test_a_caller_that_is_cancelled_while_the_work_ends_stays_cancelled() -> None:
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            caller.cancel()
            await asyncio.sleep(0)

    async def call() -> None:
        async with during(slow()):
            await asyncio.sleep(0)

    caller = asyncio.create_task(call())
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_the_pauses_between_tries_double_up_to_the_longest_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    backoff = Backoff(1, 5)
    firsts = [backoff.is_first]
    for _ in range(4):
        await backoff.pause()
        firsts.append(backoff.is_first)
    assert firsts == [True, False, False, False, False]
    backoff.begin()
    await backoff.pause(most=0.25)
    await backoff.pause(most=-1)
    assert all(longest / 2 <= seconds <= longest for seconds, longest in zip(slept, [1, 2, 4, 5], strict=False))
    assert slept[4:] == [0.25, 0]


async def test_a_deadline_ends_what_takes_too_long_and_nothing_else() -> None:
    with pytest.raises(TimeoutError), TimerQueue(0.05).limit():
        await asyncio.sleep(5)
    with TimerQueue(0.05).limit() as limit:
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    assert not limit.expired
    with pytest.raises(KeyError), TimerQueue(5).limit():
        raise KeyError


async def test_a_task_that_is_cancelled_inside_a_deadline_stays_cancelled() -> None:
    async def inside() -> None:
        with TimerQueue(5).limit():
            await asyncio.sleep(5)

    task = asyncio.create_task(inside())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
