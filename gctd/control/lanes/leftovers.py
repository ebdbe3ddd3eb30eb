"""Jobs that are left in queues: no aggregate waits for them, and no worker that is free has taken and dropped them.

They are jobs of cancelled and removed tasks, second copies of a job that was queued again, and jobs of a lost worker. They leave
the queues within seconds, so that the figures of the queues count only jobs that are needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from eventlog import AggregateDamaged, EventLog, UndecodableCommit
from gctd.control.jobs import JobKind, aggregate_of, waits
from gctd.control.lanes.backlog import Key
from gctd.control.lanes.queues import JobQueues

_log = structlog.get_logger(__name__)

LOOK = 2.0
"""Seconds between two looks at the queues. A worker acknowledges its job in less time after the end."""
NEEDED = 15.0
"""Seconds for which a job that is needed, as between two attempts, is not looked up again."""


class Leftovers:
    """Removes the jobs that are left. Any number of control planes may do so at the same time.

    `every`: seconds between two looks at the queues, at least.
    """

    def __init__(self, log: EventLog, queues: JobQueues, *, every: float = LOOK) -> None:
        self._log = log
        self._queues = queues
        self._every = every
        self._looked = float("-inf")
        self._due: dict[Key, float] = {}

    async def remove(self, knows: Callable[[JobKind, str], bool]) -> None:
        """Remove each job that two looks found, if neither `knows` nor the log needs it. Raises EventLogError.

        `knows`: whether a job is pending, in a queue or at work, as far as this control plane has seen.
        """
        now = time.monotonic()
        if now - self._looked < self._every:
            return
        self._looked = now
        queued = await self._queues.jobs()
        self._due = {key: self._due.get(key, now + self._every) for key in queued.keys if not knows(*key)}
        for key in [key for key, due in self._due.items() if due <= now]:
            if await self._needed(key):
                self._due[key] = now + NEEDED
            else:  # a job that was put into a queue after the look may be needed
                await self._queues.take_back(*key, listed=queued)
                _log.debug("job removed that is not needed", kind=key[0].value, id=key[1])

    async def _needed(self, key: Key) -> bool:
        try:
            last = await self._log.last(aggregate_of(*key), consistent=True)
            return last is not None and (waits(last.state) or last.state.lease is not None)
        except (AggregateDamaged, UndecodableCommit):
            return True
