"""Parts of a process that an error ends are started again, and readiness names them until they run steadily."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eventlog import Position
from httpkit.monitoring import gauge
from httpkit.sse.stream import Frame
from servicekit.parts import Part, ProcessParts
from servicekit.read_side import CommitFrames, EventChange, ReadSide, migrated
from tests.support.readside.ledger import ACCOUNT, MODEL, Opened
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servicekit.parts._FIRST_PAUSE", 0.01)


async def test_a_part_is_started_again_after_each_error_and_named_until_it_is_steady(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, proceed = 0, asyncio.Event()

    async def part() -> None:
        nonlocal began
        began += 1
        if began <= 3:
            raise RuntimeError(f"fault {began}")
        if began == 4:
            await proceed.wait()
            monkeypatch.setattr("servicekit.parts.STEADY", 0.2)
            raise RuntimeError("fault 4")
        await asyncio.Event().wait()

    work = ProcessParts(Part("lanes", part))
    async with work.running():
        await wait_until(lambda: began == 4)
        assert work.note() == "part 'lanes' ended and is started again: RuntimeError: fault 3"
        proceed.set()
        await wait_until(lambda: "fault 4" in (work.note() or ""))
        await wait_until(lambda: began == 5)
        await wait_until(lambda: work.note() is None)
    (figures,) = work.collect()
    assert [(sample.labels, sample.value) for sample in figures.samples] == [({"part": "lanes"}, 4.0)]


async def test_a_part_that_has_done_its_work_ends() -> None:
    began = list[str]()

    async def done() -> None:
        began.append("done")

    work = ProcessParts(Part("done", done))
    async with work.running():
        await wait_until(lambda: began)
        await asyncio.sleep(0.1)  # time for ten more starts
    assert began == ["done"]
    assert work.note() is None


def test_notes_and_figures_are_those_of_each_part() -> None:
    noted = ProcessParts(
        Part("a", note=lambda: "slow"), Part("b"), Part("c", note=lambda: "late"), Part("d", collect=lambda: [gauge("d", "", 1)])
    )
    assert noted.note() == "slow; late"
    assert [family.name for family in noted.collect()] == ["d", "parts_failed"]


async def test_a_service_names_a_part_that_ended_and_starts_it_again(nats_url: str, tmp_path: Path) -> None:
    began = 0

    async def dispatch() -> None:
        nonlocal began
        began += 1
        if began == 1:
            raise RuntimeError("the transport is closed")
        await asyncio.Event().wait()

    async with ledger_log(nats_url) as log, migrated(f"sqlite:{tmp_path / 'read.db'}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        side.add_leading(Part("dispatcher", dispatch))
        async with side.running():
            await wait_until(lambda: began == 2, timeout=30)
            assert "part 'dispatcher' ended and is started again: RuntimeError: the transport is closed" in (
                side.parts.note() or ""
            )


async def test_a_part_of_a_service_that_has_done_its_work_ends(nats_url: str, tmp_path: Path) -> None:
    began = 0

    async def done() -> None:
        nonlocal began
        began += 1

    async with ledger_log(nats_url) as log, migrated(f"sqlite:{tmp_path / 'read.db'}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        side.add_leading(Part("done", done))
        async with side.running():
            await wait_until(lambda: began)
            await asyncio.sleep(0.1)  # time for many more starts
    assert began == 1


async def test_events_that_could_not_be_shown_are_read_from_the_log(nats_url: str, tmp_path: Path) -> None:
    """The event stream does not continue behind them as if they had never been."""
    faults = 1

    def show(change: EventChange) -> list[Frame]:
        nonlocal faults
        if faults:
            faults -= 1
            raise RuntimeError("a fault of the program")
        return [Frame(Position(change.sequence, 0), "shown", b"{}")]

    async with ledger_log(nats_url) as log, migrated(f"sqlite:{tmp_path / 'read.db'}", MODEL) as store:
        frames = CommitFrames(log, {ACCOUNT.category: ACCOUNT}, show)
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running():
            await side.commands.execute(ACCOUNT, "a", Opened("ann"))
            await wait_until(lambda: side.hub.sequence == 1, timeout=30)
            assert "part 'event stream' ended" in (side.parts.note() or "")
            await side.commands.execute(ACCOUNT, "b", Opened("bob"))
            await wait_until(lambda: side.hub.sequence == 2, timeout=30)
            shown = [frame.position.sequence async for some in frames.replay(Position(0, 0), 2) for frame in some]
    assert shown == [1, 2]
