"""A log in memory and a store whose faults can be chosen, and projectors on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import pytest

from eventlog import Commit, Head, Unavailable
from eventlog.testing.memory import MemoryLog
from projections.errors import ProjectorStopped, StoreUnavailable
from projections.model import ReadModel
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import CheckpointOutcome, Step, Store
from tests.support.readside import ledger


class FaultyLog(MemoryLog):
    """A log whose reads can be made to fail."""

    def __init__(self) -> None:
        super().__init__(ledger.REGISTRY)
        self.unavailable = False
        self.first = 1
        self.follows = 0

    async def head(self) -> Head:
        if self.unavailable:
            raise Unavailable("nobody there")
        return attrs.evolve(await super().head(), first=self.first)

    async def follow(self, **asked: Any) -> AsyncIterator[Sequence[Commit]]:
        self.follows += 1
        async for commits in super().follow(**asked):
            if self.unavailable:
                raise Unavailable("nobody there")
            yield commits


class Faults:
    """Faults of a store, which can be away or held up, and its writes."""

    def __init__(self, store: Store) -> None:
        self.away = False
        self.tries = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.sizes: list[int] = []
        self._advance = store.advance
        vars(store)["advance"] = self._met  # of this one store, of whichever kind

    async def _met(self, steps: Sequence[Step], *more: Any) -> CheckpointOutcome:
        self.tries += 1
        await self.gate.wait()
        if self.away:
            raise StoreUnavailable("the disk is full")
        outcome = await self._advance(steps, *more)
        self.sizes.append(steps[0].after.applied - (steps[0].before.applied if steps[0].before else 0))
        return outcome


async def stopped(projector: Projector) -> ProjectorStopped:
    """The reason that it stops for; status, waiters and task agree on it."""
    async with asyncio.timeout(20):
        with pytest.raises(ProjectorStopped) as caught:
            await projector.run()
    status = projector.status()
    assert status.state is ProjectorState.STOPPED
    assert status.error == str(caught.value)
    with pytest.raises(ProjectorStopped) as waiting:
        await projector.wait_for(projector.position + 1, 20)
    assert waiting.value is caught.value
    return caught.value


async def equals_a_fold(log: MemoryLog, store: Store, model: ReadModel = ledger.MODEL) -> bool:
    async with replayed_copy(log, model, until=(await log.head()).last) as fresh:
        difference = await compare(store, fresh, model)
        assert difference is None, str(difference)
        return await dump(store, model) == await dump(fresh, model)
