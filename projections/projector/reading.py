"""Reading the log for a projector: its commits ahead of the writes, and its end.

Commits gather during the writes, without a timer: slower writes get larger batches. If no request waits for a commit, the work
that is ready in the event loop goes first, for a bounded number of turns. At low load they take a fraction of a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence, Sized
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from eventlog import Commit, EventLog, Unavailable
from eventlog.support.timers import during, until_tick
from projections.projector.status import ProjectorProgress
from projections.projector.writer import CheckpointWriter, backoff

MOST_BYTES = 4 * 1024**2
"""Bytes of commits that are gathered, and of the commits that are given at once. This bounds memory for commits of any size,
since their events and rows take several times the size.
"""
REPLAY_BYTES = 16 * 1024**2
"""The same in a replay, of which it ends the batches: the larger those are, the fewer rows are written more than once. With a
quarter of it a replay takes a quarter longer."""
_TURNS = 32
"""Turns of the event loop that a batch leaves to other work. At 64 connections, bookings take 5 % less processor time with it."""
_ENOUGH = 100
"""Commits of a batch that does not wait for more."""


class Backlog:
    """A queue of commits between the reader and the writer, in order, bounded in commits and in bytes."""

    def __init__(self, most: int, *, waiters: Sized = ("a request",)) -> None:
        """`most`: commits that are gathered, and given at once. `waiters`: the requests that wait for a commit."""
        self._most = most
        self.most_bytes = MOST_BYTES
        """Bytes of commits that are gathered, and given at once."""
        self._commits: list[Commit] = []
        self._bytes = 0
        self._waiters = waiters
        self._end: Exception | None = None
        self._ended = False
        self._filled = asyncio.Event()
        self._taken = asyncio.Event()

    async def put(self, commits: Sequence[Commit]) -> None:
        """Add commits, when there is room."""
        while self._commits and (len(self._commits) + len(commits) > self._most or self._bytes > self.most_bytes):
            self._taken.clear()
            await self._taken.wait()
        self._commits += commits
        self._bytes += _size(commits)
        self._filled.set()

    def end(self, error: Exception | None = None) -> None:
        """End the input, because of an error or because all has been read. Gathered commits can still be taken."""
        if not self._ended:
            self._ended, self._end = True, error
            self._filled.set()

    async def take(self) -> Sequence[Commit]:
        """All that has been gathered; an empty sequence when all has been taken and no more comes. Raises the error of `end`."""
        while not self._commits:
            if self._end is not None:
                raise self._end
            if self._ended:
                return ()
            self._filled.clear()
            await self._filled.wait()
        for _ in range(_TURNS):
            if len(self._commits) >= _ENOUGH or self._ended or len(self._waiters):
                break
            await asyncio.sleep(0)
        commits, self._commits = self._commits, []
        if self._bytes > self.most_bytes:
            end = _within(commits, self.most_bytes)
            commits, self._commits = commits[:end], commits[end:]
        self._bytes = _size(self._commits) if self._commits else 0
        self._taken.set()
        return commits


def _size(commits: Sequence[Commit]) -> int:
    return sum(len(commit.data) for commit in commits)


def _within(commits: Sequence[Commit], most: int) -> int:
    """Return how many of the first commits have at most `most` bytes together, but at least one."""
    total = 0
    for number, commit in enumerate(commits):
        total += len(commit.data)
        if total > most and number:
            return number
    return len(commits)


_HEAD_EVERY, _HEAD_EVERY_IF_AWAY = 5.0, 1.0


class ProjectorReader:
    """Reads a log while a projector writes. While the log is away it retries, and reports that to the progress."""

    def __init__(self, event_log: EventLog, writer: CheckpointWriter, progress: ProjectorProgress, batch: int) -> None:
        """`batch`: commits that are read together at most."""
        self._log = event_log
        self._batch = batch
        self._writer = writer
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
        waits = backoff()
        newest: Commit | None = None
        while True:
            proof = self._writer.record_at(after) if newest is None else newest.digest
            try:
                async for commits in self._log.follow(
                    after=after, until=until, batch=self._batch, incarnation=self._writer.incarnation, proof=proof
                ):
                    self._progress.trouble("reading the log", None)
                    waits.begin()
                    newest = commits[-1]
                    after = newest.sequence
                    await backlog.put(commits)
                backlog.end()
            except Unavailable as error:
                self._progress.trouble("reading the log", error)
                await waits.pause()
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
