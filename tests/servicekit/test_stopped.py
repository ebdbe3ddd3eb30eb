"""A projector that has stopped closes writes before they are stored, and takes nothing back that was stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from eventlog.jetstream.api import call
from eventlog.jetstream.log import JetStreamLog
from projections.errors import AggregateParked, ProjectorStopped
from projections.projector.status import ProjectorState
from servicekit.parts import ProcessParts
from servicekit.read_side import CommitFrames, ReadSide, migrated
from servicekit.replica import ReadReplica
from tests.support.readside.ledger import ACCOUNT, MODEL, Booked, Opened
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@asynccontextmanager
async def served(log: JetStreamLog, path: Path) -> AsyncIterator[ReadSide]:
    async with migrated(f"sqlite:{path}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            yield side


async def test_writes_are_refused_and_nothing_of_them_is_stored(nats_url: str, tmp_path: Path) -> None:
    """With an idempotency key and without one. A stopped projector does not cause 503 for a stored command."""
    async with ledger_log(nats_url) as log:
        async with served(log, tmp_path / "other.db") as writer:
            for name in ("a", "lost", "b"):
                await writer.commands.execute(ACCOUNT, name, Opened("ann"))
        await call(log.connection, f"STREAM.MSG.DELETE.{MODEL.stream}", {"seq": 2, "no_erase": True})
        async with served(log, tmp_path / "read.db") as side:
            await wait_until(lambda: side.projector.status().state is ProjectorState.STOPPED, timeout=30)
            for name in ("b", "new"):
                for _ in range(2):
                    with pytest.raises(ProjectorStopped, match="has a hole"):
                        await side.commands.execute(ACCOUNT, name, Booked(1) if name == "b" else Opened("eve"))
            assert (await log.head()).last == 3
            # A command that was stored just before the stop is answered.
            await asyncio.wait_for(side.acknowledge(3, immediate=False), 1)


async def test_what_is_parked_is_said_to_who_asks_for_its_sequence_and_at_once(nats_url: str, tmp_path: Path) -> None:
    """A write to the aggregate is answered, since it is stored. A read that names it is not answered with 404."""
    async with ledger_log(nats_url) as log, served(log, tmp_path / "read.db") as side:
        for event in (Opened("ann"), Booked(1, "poison"), Booked(2)):
            outcome = await side.commands.execute(ACCOUNT, "bad", event)
            await side.acknowledge(outcome.sequence, immediate=False)
        await side.commands.execute(ACCOUNT, "good", Opened("gus"))
        await side.projector.wait_for(4, 20)
        for sequence in (2, 3):
            with pytest.raises(AggregateParked, match=f"sequence {sequence} is stored and not in the tables") as raised:
                await asyncio.wait_for(side.wait_for(sequence, 5), 2)
            assert raised.value.status == 503
        for sequence in (1, 4):
            await side.wait_for(sequence, 5)


async def test_a_process_that_only_reads_tells_of_parked_aggregates_too(nats_url: str, tmp_path: Path) -> None:
    """With a broker for the commits of the parked aggregate alone, and without one for all commits that it may be."""
    async with ledger_log(nats_url) as log, served(log, tmp_path / "read.db") as side:
        for name, event in (("bad", Opened("ann")), ("bad", Booked(1, "poison")), ("good", Opened("gus")), ("bad", Booked(2))):
            await side.commands.execute(ACCOUNT, name, event)
        await side.projector.wait_for(4, 20)
        for connection, refused in ((log.connection, {2, 4}), (None, {2, 3, 4})):
            replica = ReadReplica(
                f"sqlite:{tmp_path / 'read.db'}",
                MODEL,
                connection=connection,
                frames=lambda log: CommitFrames(log, {}, lambda _: ()),
            )
            for sequence in range(1, 5):
                with pytest.raises(AggregateParked) if sequence in refused else nullcontext():
                    await replica.wait_for(sequence, 5)
            assert ProcessParts(*replica.parts).note() is None
            await replica.tables.check()
            assert "1 parked, 2 commits wait; the first: ledger.account.bad" in (ProcessParts(*replica.parts).note() or "")
            await replica.tables.close()


async def test_findings_of_passes_over_the_log_are_known_after_a_restart(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before another pass is made."""
    monkeypatch.setattr("eventlog.admin.scrub._FIRST_AFTER", 3600)
    async with ledger_log(nats_url) as log:
        async with served(log, tmp_path / "read.db") as side:
            await side.commands.execute(ACCOUNT, "a", Opened("ann"))
            await log.connection.client.jetstream().publish("ledger.account.stray", b"{}")
            assert (await side.scrubber.scrub()).count == 1
        async with served(log, tmp_path / "read.db") as side:
            await wait_until(lambda: "1 records of LEDGER are damaged" in (side.parts.note() or ""), timeout=30)


async def test_the_position_is_known_before_the_first_answer_after_a_restart(nats_url: str, tmp_path: Path) -> None:
    async with ledger_log(nats_url) as log:
        async with served(log, tmp_path / "read.db") as side:
            assert side.projector.position == 0
            outcome = await side.commands.execute(ACCOUNT, "a", Opened("ann"))
            await side.acknowledge(outcome.sequence, immediate=False)
        async with served(log, tmp_path / "read.db") as side:
            assert side.projector.position == 1
            await wait_until(lambda: side.projector.status().state is ProjectorState.LIVE, timeout=30)
