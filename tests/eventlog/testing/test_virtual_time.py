"""The loop on a virtual clock: time passes only between callbacks, a seed replays exactly, a process can be held."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.support.log.virtual_time import Deadlock, VirtualTimeLoop, current_process


def order_of(seed: int) -> list[str]:
    """Three processes that take five turns each."""
    loop, turns = VirtualTimeLoop(seed), list[str]()

    async def work() -> None:
        for number in range(5):
            turns.append(f"{current_process()}{number}")
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(loop.create_task(work(), context=loop.context_of(name)) for name in "abc"))

    loop.run_until_complete(main())
    loop.close()
    return turns


def test_a_day_passes_at_once() -> None:
    loop, began = VirtualTimeLoop(1), time.monotonic()
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == pytest.approx(86_400)
    assert time.monotonic() - began < 5
    loop.close()


def test_a_seed_gives_one_order_and_others_give_others() -> None:
    assert order_of(1) == order_of(1)
    assert len({tuple(order_of(seed)) for seed in range(20)}) > 10


def test_within_a_process_the_order_is_that_of_asyncio() -> None:
    for seed in range(20):
        turns = order_of(seed)
        assert all([turn for turn in turns if turn[0] == name] == [f"{name}{number}" for number in range(5)] for name in "abc")


def test_what_is_waited_for_in_vain_is_a_deadlock() -> None:
    loop = VirtualTimeLoop(1)
    future = loop.create_future()
    with pytest.raises(Deadlock):
        loop.run_until_complete(future)
    loop.close()


def test_a_process_that_is_held_does_nothing_and_its_time_goes_on() -> None:
    loop, seen = VirtualTimeLoop(1), list[float]()

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append(loop.time())

    async def main() -> None:
        ticking = loop.create_task(tick(), context=loop.context_of("held"))
        await asyncio.sleep(2.5)
        loop.hold("held")
        await asyncio.sleep(5)
        loop.release("held")
        await asyncio.sleep(1.7)
        ticking.cancel()

    loop.run_until_complete(main())
    assert seen == pytest.approx([1, 2, 7.5, 8.5])
    loop.close()


def test_timeouts_and_locks_of_asyncio_work() -> None:
    loop = VirtualTimeLoop(1)

    async def main() -> str:
        lock = asyncio.Lock()
        async with lock:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await lock.acquire()
        assert await asyncio.to_thread(lambda: 5) == 5
        return await asyncio.wait_for(asyncio.sleep(1, "done"), 2)

    assert loop.run_until_complete(main()) == "done"
    assert loop.time() == pytest.approx(4)
    loop.close()
