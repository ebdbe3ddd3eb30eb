"""A projector that has stopped closes writes before they are stored, and takes nothing back that was stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eventlog.jetstream.api import call
from eventlog.jetstream.log import JetStreamLog
from projections.errors import ProjectorStopped
from projections.projector.status import State
from servicekit.feed import CommitFrames
from servicekit.readside import ReadSide, migrated
from tests.support.readside.ledger import ACCOUNT, MODEL, Booked, Opened
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault


@asynccontextmanager
async def served(log: JetStreamLog, path: Path) -> AsyncIterator[ReadSide]:
    async with migrated(f"sqlite:{path}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            yield side


async def test_writes_are_refused_and_nothing_of_them_is_stored(nats_url: str, tmp_path: Path) -> None:
    """With an idempotency key and without one; a stopped projector is no reason to say 503 of what was stored."""
    async with ledger_log(nats_url) as log:
        async with served(log, tmp_path / "other.db") as writer:
            for name in ("a", "lost", "b"):
                await writer.commands.execute(ACCOUNT, name, Opened("ann"))
        await call(log.connection, f"STREAM.MSG.DELETE.{MODEL.stream}", {"seq": 2, "no_erase": True})
        async with served(log, tmp_path / "read.db") as side:
            await wait_until(lambda: side.projector.status().state is State.STOPPED, timeout=30)
            for name in ("b", "new"):
                for _ in range(2):
                    with pytest.raises(ProjectorStopped, match="has a hole"):
                        await side.commands.execute(ACCOUNT, name, Booked(1) if name == "b" else Opened("eve"))
            assert (await log.head()).last == 3
            assert await asyncio.wait_for(side.wait_visible(3), 1) == 3  # what was stored a moment before it stopped is answered
