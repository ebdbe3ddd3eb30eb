"""Reading the log for a projector: its commits ahead of the writes, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from eventlog import Commit, EventLog, Unavailable
from eventlog.support.timers import during, until_tick
from projections.projector.backlog import Backlog
from projections.projector.continuity import check_contiguous
from projections.projector.status import ProjectorProgress
from projections.projector.writer import CheckpointWriter, pauses

_HEAD_EVERY, _HEAD_EVERY_IF_AWAY = 5.0, 1.0


class ProjectorReader:
    """Reads a log while a projector writes. While the log is away it retries, and reports that to the progress."""

    def __init__(self, event_log: EventLog, checkpoints: CheckpointWriter, progress: ProjectorProgress, batch: int) -> None:
        """`batch`: commits that are read together at most."""
        self._log = event_log
        self._batch = batch
        self._checkpoints = checkpoints
        self._progress = progress
        self.end_seen: int | None = None
        """The last sequence of the log when it was asked last; None if it was not asked yet."""

    def reading(self, backlog: Backlog, after: int, until: int | None) -> AbstractAsyncContextManager[object]:
        """During the block, put the commits after a sequence into the backlog, which gets errors of the log too."""
        return during(self._read(backlog, after, until))

    @asynccontextmanager
    async def following(self, backlog: Backlog, after: int, until: int | None) -> AsyncIterator[None]:
        """As `reading`. The end of the log is asked for every five seconds too."""
        async with self.reading(backlog, after, until), during(self._watch(backlog)):
            yield

    async def _read(self, backlog: Backlog, after: int, until: int | None) -> None:
        waits = pauses()
        newest: Commit | None = None
        while True:
            proof = self._checkpoints.record_at(after) if newest is None else newest.digest
            try:
                async for commits in self._log.follow(
                    after=after, until=until, batch=self._batch, incarnation=self._checkpoints.incarnation, proof=proof
                ):
                    self._progress.trouble("reading the log", None)
                    waits = pauses()
                    check_contiguous(commits, after)
                    newest = commits[-1]
                    after = newest.sequence
                    await backlog.put(commits)
                backlog.end()
            except Unavailable as error:
                self._progress.trouble("reading the log", error)
                await asyncio.sleep(next(waits))
            except Exception as error:  # noqa: BLE001 - the consumer of the backlog raises it
                backlog.end(error)
                return
            else:
                return

    async def _watch(self, backlog: Backlog) -> None:
        every = _HEAD_EVERY
        while True:
            await asyncio.sleep(until_tick(every))
            try:
                head = await self._log.head()
            except Unavailable as error:
                every = _HEAD_EVERY_IF_AWAY
                self._progress.trouble("the log", error)
                self._progress.blind()
            except Exception as error:  # noqa: BLE001 - as in `_read`
                backlog.end(error)
                return
            else:
                every = _HEAD_EVERY
                self._progress.trouble("the log", None)
                self._progress.seen(head.last)
                self.end_seen = head.last
