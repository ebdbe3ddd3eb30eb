"""Standing by while another process updates a shared database: this process shows its changes as its own.

The leader notifies the others when it has moved the checkpoints (`projections.store.LeaderElection`). The others also read the
commits from the log. So readers are woken and event streams continue without polling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from eventlog import Commit
from eventlog.support.timers import until_one_ends
from projections.projector.backlog import Backlog
from projections.projector.writer import CheckpointWriter
from projections.store import LeaderElection


class Leadership:
    """The state of leadership, for work that only the leader does."""

    def __init__(self) -> None:
        self._gained = asyncio.Event()
        self._lost = asyncio.Event()
        self._lost.set()

    @property
    def held(self) -> bool:
        """Whether it leads now."""
        return self._gained.is_set()

    def set(self, *, held: bool) -> None:
        """It leads now, or does not."""
        now, before = (self._gained, self._lost) if held else (self._lost, self._gained)
        now.set()
        before.clear()

    async def gained(self) -> None:
        """Return when it leads."""
        await self._gained.wait()

    async def lost(self) -> None:
        """Return when it does not."""
        await self._lost.wait()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do work while it leads, from the beginning each time it leads, until the work returns. Raises the error of the work."""
        while True:
            await self.gained()
            working, _ = await until_one_ends(work(), self.lost())
            if not working.cancelled():
                working.result()
                return


async def stand_by(
    election: LeaderElection,
    advancing: CheckpointWriter,
    backlog: Backlog,
    reached: Callable[[], None],
    show: Callable[[Sequence[Commit]], None],
) -> None:
    """Return when this process leads. Raises StoreUnavailable, and the errors of reading the log.

    `reached` is called when the tables can be read up to `advancing.lowest`; `show` is given the commits from `backlog` up to
    there, in order, as soon as they are known here too.
    """
    moved = asyncio.Event()

    async def show_along() -> None:
        while commits := await backlog.take():
            while commits:
                ready = [commit for commit in commits if commit.sequence <= advancing.lowest]
                if ready:
                    show(ready)
                    commits = commits[len(ready) :]
                else:
                    moved.clear()
                    await moved.wait()

    showing = asyncio.create_task(show_along())
    try:
        async with election.news() as news:
            async for checkpoints in news:
                if checkpoints is not None:
                    await advancing.note(checkpoints)
                    reached()
                    moved.set()
                elif await election.take():
                    return
                if showing.done():
                    showing.result()
    finally:
        showing.cancel()
        await asyncio.wait({showing})
