"""Readers of the stream of `bulk_stream`, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from eventlog import Commit, Registry
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.reading import Follower
from tests.support.log.bulk import STREAM
from tests.support.pace import slowness
from tests.support.waiting import wait_until


def following(connection: Connection, **options: Any) -> Any:
    """Return a reader of the stream, from its beginning by default."""
    return Follower(connection, STREAM, Registry(), **{"after": 0} | options).lists()


async def sequences(lists: AsyncIterator[Sequence[Commit]], seconds: float = 20.0) -> list[int]:
    """Return all sequences that are read up to the end."""
    async with asyncio.timeout(seconds * slowness()):
        return [commit.sequence async for commits in lists for commit in commits]


class Reading:
    """A reader in a separate task, and the sequences it has read."""

    def __init__(self, connection: Connection, **options: Any) -> None:
        self.sequences: list[int] = []
        self.task = asyncio.create_task(self._read(following(connection, **options)))

    async def _read(self, lists: Any) -> None:
        async with aclosing(lists):
            async for commits in lists:
                self.sequences += [commit.sequence for commit in commits]

    async def reaches(self, sequence: int, seconds: float = 15.0) -> None:
        """Wait until it has read up to a sequence. An error that ends it earlier is raised."""
        await wait_until(lambda: self.task.done() or (self.sequences and self.sequences[-1] >= sequence), seconds)
        if self.task.done():
            await self.task

    def has(self, count: int) -> bool:
        """Whether it has read that many commits."""
        return len(self.sequences) >= count

    async def fails(self, seconds: float = 15.0) -> BaseException:
        """The error that it ends with."""
        await asyncio.wait({self.task}, timeout=seconds * slowness())
        error = self.task.exception()
        assert error is not None
        return error

    async def close(self) -> None:
        """End it."""
        self.task.cancel()
        await asyncio.wait({self.task})
