"""Work during a block ends with the block, and hides no error and no cancellation."""

from __future__ import annotations

import asyncio

import pytest

from eventlog.support.timers import during


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
