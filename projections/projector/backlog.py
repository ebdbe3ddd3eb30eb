"""Commits that have been read and not yet applied.

They gather during the writes, without a timer: slower writes get larger batches. If no request waits for a commit, the work
that is ready in the event loop goes first, for a bounded number of turns. At low load they take a fraction of a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from eventlog import Commit

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

    def __init__(self, most: int, *, is_urgent: Callable[[], bool] = lambda: True) -> None:
        """`most`: commits that are gathered, and given at once. `is_urgent`: whether a request waits for a commit."""
        self._most = most
        self.most_bytes = MOST_BYTES
        """Bytes of commits that are gathered, and given at once."""
        self._commits: list[Commit] = []
        self._bytes = 0
        self._is_urgent = is_urgent
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
            if len(self._commits) >= _ENOUGH or self._ended or self._is_urgent():
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
