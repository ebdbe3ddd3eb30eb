"""Deriving ahead of the writing: while one batch is written the processes derive the next, and the one after is read.

Batches that were derived ahead are checked when it is their turn: a part whose inputs have changed since, because an aggregate
of it was parked for example, is derived again. So the written rows never depend on the number of processes or their speed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import attrs

from eventlog import Commit
from projections.parallel.parts import PartInputs, given, merged, split
from projections.parallel.workers import Workers
from projections.projector.backlog import Backlog
from projections.projector.derive import ChangeSet, reached_of
from projections.projector.writer import CheckpointWriter

Ahead = AsyncGenerator[tuple[Sequence[Commit], Callable[[], Awaitable[ChangeSet]]], None]
"""Batches in order, each with a function for its changes, to be called in turn, when all batches before it are written."""


@asynccontextmanager
async def derived_ahead(workers: Workers, advancing: CheckpointWriter, backlog: Backlog, until: int) -> AsyncIterator[Ahead]:
    """The batches of a backlog up to the one with sequence `until`, or to its end. Taking them raises what the backlog raises."""
    batches: asyncio.Queue[_Batch | Exception | None] = asyncio.Queue(1)
    begun: deque[_Batch] = deque()

    async def take() -> None:
        reached = 0
        try:
            while reached < until and (commits := await backlog.take()):
                reached = commits[-1].sequence
                begun.append(_Batch(workers, advancing, commits))
                await batches.put(begun[-1])
        except Exception as error:  # noqa: BLE001 - who takes the batches raises it
            await batches.put(error)
        else:
            await batches.put(None)

    async def give() -> Ahead:
        while (batch := await batches.get()) is not None:
            if isinstance(batch, Exception):
                raise batch
            yield batch.commits, batch.derived
            begun.popleft()

    taking, giving = asyncio.create_task(take()), give()
    try:
        yield giving
    finally:
        await giving.aclose()
        tasks = [taking, *(batch.task for batch in begun)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@attrs.define
class _Part:
    """The part of a batch in one process: derived from the given inputs."""

    number: int
    commits: Sequence[Commit]
    given: PartInputs
    derived: ChangeSet


class _Batch:
    """A batch that is being derived."""

    def __init__(self, workers: Workers, advancing: CheckpointWriter, commits: Sequence[Commit]) -> None:
        self.commits = commits
        self._workers = workers
        self._advancing = advancing
        self._parts: Sequence[_Part] = ()
        self.task = asyncio.create_task(self._derive())

    async def derived(self) -> ChangeSet:
        """Return its changes, with the inputs of now. Raises WorkerLost."""
        found = await self.task
        changed = [part for part in self._parts if part.given != self._given(part.commits)]
        if changed:
            anew = {part.number: part for part in await asyncio.gather(*(self._part(one.number, one.commits) for one in changed))}
            self._parts = [anew.get(part.number, part) for part in self._parts]
            found = await self._merged()
        return found

    async def _derive(self) -> ChangeSet:
        parts = await asyncio.to_thread(split, self.commits, len(self._workers))
        self._parts = await asyncio.gather(*(self._part(number, part) for number, part in enumerate(parts) if part))
        return await self._merged()

    async def _part(self, number: int, commits: Sequence[Commit]) -> _Part:
        given = self._given(commits)
        return _Part(number, commits, given, await self._workers.derive(number, commits, given, self._advancing.now()))

    async def _merged(self) -> ChangeSet:
        return await asyncio.to_thread(merged, [part.derived for part in self._parts])

    def _given(self, commits: Sequence[Commit]) -> PartInputs:
        return given(reached_of(self._advancing.checkpoints), self._advancing.parked, commits)
