"""What has been read and not yet applied, gathered while a batch is written: the slower the writing, the larger the batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eventlog import Commit

MOST_BYTES = 8 * 1024**2
"""Commits are not gathered beyond that many bytes: memory is bounded however large they are."""


class Backlog:
    """Hands commits from one who reads to one who applies them, in order; bounded in commits and in bytes."""

    def __init__(self, most: int) -> None:
        """`most`: commits that are gathered, and given at once."""
        self._most = most
        self._commits: list[Commit] = []
        self._bytes = 0
        self._end: Exception | None = None
        self._ended = False
        self._filled = asyncio.Event()
        self._taken = asyncio.Event()

    async def put(self, commits: Sequence[Commit]) -> None:
        """Add commits, when there is room."""
        while self._commits and (len(self._commits) + len(commits) > self._most or self._bytes > MOST_BYTES):
            self._taken.clear()
            await self._taken.wait()
        self._commits += commits
        self._bytes += sum(len(commit.data) for commit in commits)
        self._filled.set()

    def end(self, error: Exception | None = None) -> None:
        """No more will come, because of an error or because all has been read; what is there can still be taken."""
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
        commits, self._commits, self._bytes = self._commits, [], 0
        self._taken.set()
        return commits
