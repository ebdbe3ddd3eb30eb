"""An attempt under way: its job's lease is kept, and it ends as soon as the log shows its end.

An attempt ends from outside if another event of the same aggregate ends it: a user cancelled the task, or the control plane took
this worker for lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from eventlog import AggregateId, EventLog
from gctd.broker.job import Job

T = TypeVar("T")

UNWATCHED = 0.25
"""Seconds from its beginning for which an attempt is not watched, which takes a consumer on the broker: many end before."""


class AttemptOver(Exception):
    """The attempt was ended from outside. Its results are not reported. `state` of the aggregate has the reason."""

    def __init__(self, state: Any) -> None:
        super().__init__("the attempt is over")
        self.state = state


async def attempt(
    log: EventLog,
    job: Job,
    aggregate: AggregateId,
    *,
    after: int,
    held: Callable[[Any], bool],
    work: Callable[[], Awaitable[T]],
) -> T:
    """Do the work while the attempt lasts, and return its result.

    `after` is the sequence at which the attempt began. `held(state)` reports whether it still lasts. Raises AttemptOver if the
    attempt ends, after the work was cancelled and has cleaned up. Raises all errors of the work.
    """

    async def watch() -> Any:
        async for commits in log.follow(after=after, aggregate=aggregate):
            if not held(commits[-1].state):
                return commits[-1].state
        raise RuntimeError("following a log has no end")

    working = asyncio.ensure_future(work())
    running: list[asyncio.Future[Any]] = [working]
    try:
        async with job.hold():
            await asyncio.wait(running, timeout=UNWATCHED)
            if not working.done():
                running.append(asyncio.create_task(watch()))
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise AttemptOver(running[-1].result())
        return working.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
