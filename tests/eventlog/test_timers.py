"""Many timers of one length on one."""

from __future__ import annotations

import asyncio

from eventlog.support.timers import TimerQueue
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
