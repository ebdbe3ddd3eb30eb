"""Commands that wait for one aggregate inside this process."""

from __future__ import annotations

import asyncio

import attrs

from eventlog.commands.rounds import Pending
from eventlog.commit import AggregateId


@attrs.define(eq=False)
class AggregateQueue:
    """The commands that wait for one aggregate, the task that serves them, the lock under which this process changes it.

    `users` are tasks that hold the lock or wait for it: a queue without users is forgotten.
    """

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: list[Pending] = attrs.field(factory=list)
    task: asyncio.Task[None] | None = None
    users: int = 0


class AggregateQueues:
    """The queues that have users."""

    def __init__(self) -> None:
        self._queues: dict[AggregateId, AggregateQueue] = {}

    def get(self, aggregate: AggregateId) -> AggregateQueue | None:
        """The queue of an aggregate; None if it has no user."""
        return self._queues.get(aggregate)

    def take(self, aggregate: AggregateId) -> AggregateQueue:
        """The queue of an aggregate, for one more user, who gives it back with `leave`."""
        queue = self._queues.get(aggregate)
        if queue is None:
            queue = self._queues[aggregate] = AggregateQueue()
        queue.users += 1
        return queue

    def leave(self, aggregate: AggregateId, queue: AggregateQueue) -> None:
        """Give a queue back."""
        queue.users -= 1
        if not queue.users:
            del self._queues[aggregate]
