"""The next job of several queues: the first queue that has one at once, else whichever gets one first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eventlog.broker.job import Job
from eventlog.broker.queue import WorkQueue


async def next_job(queues: Sequence[WorkQueue], seconds: float, held: asyncio.Event) -> Job | None:
    """Return the next job; None if none comes within `seconds`, or as soon as `held` is set.

    A second job that comes at the same moment goes back to its queue. Raises Unavailable, OutcomeUnknown.
    """
    for queue in queues:
        if (job := await queue.fetch_now()) is not None:
            return job
    fetching = [asyncio.create_task(queue.fetch(seconds)) for queue in queues]
    holding = asyncio.create_task(held.wait())
    taken: Job | None = None
    try:
        await asyncio.wait({*fetching, holding}, return_when=asyncio.FIRST_COMPLETED)
        taken = next((job for task in fetching if task.done() and (job := task.result()) is not None), None)
    finally:
        for task in (*fetching, holding):
            task.cancel()
        for result in await asyncio.gather(*fetching, holding, return_exceptions=True):
            if isinstance(result, Job) and result is not taken:
                await result.nak(0)
    return taken
