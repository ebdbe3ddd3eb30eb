"""Commands that wait for one aggregate inside this process."""

from __future__ import annotations

import asyncio

import attrs

from eventlog.commands.rounds import Pending


@attrs.define(eq=False)
class AggregateQueue:
    """The commands that wait for one aggregate, the task that serves them, the lock under which this process changes it.

    A queue that no task holds is forgotten.
    """

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: list[Pending] = attrs.field(factory=list)
    task: asyncio.Task[None] | None = None
