"""Parts of a process that an error ends are started again, and readiness names them until they run steadily."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eventlog import Position
from httpkit.sse.frames import Frame
from servicekit.feed import CommitFrames, EventChange
from servicekit.readside import ReadSide, migrated
from servicekit.serving import background
from servicekit.serving.background import BackgroundWork
from tests.support.readside.ledger import ACCOUNT, MODEL, Opened
from tests.support.readside.projecting import ledger_log
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_FIRST_PAUSE", 0.01)


async def test_a_part_is_started_again_after_each_error_and_named_until_it_is_steady(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, work, proceed = 0, BackgroundWork(), asyncio.Event()

    async def part() -> None:
        nonlocal began
        began += 1
        if began <= 3:
            raise RuntimeError(f"fault {began}")
        if began == 4:
            await proceed.wait()
            monkeypatch.setattr(background, "STEADY", 0.2)
            raise RuntimeError("fault 4")
        await asyncio.Event().wait()

    async with work.running({"lanes": part}):
        await wait_until(lambda: began == 4)
        assert work.note() == "part 'lanes' ended and is started again: RuntimeError: fault 3"
        proceed.set()
        await wait_until(lambda: "fault 4" in (work.note() or ""))
        await wait_until(lambda: began == 5)
        await wait_until(lambda: work.note() is None)
    (figures,) = work.collect()
    assert [(sample.labels, sample.value) for sample in figures.samples] == [({"part": "lanes"}, 4.0)]


async def test_a_part_that_has_done_its_work_ends_and_so_does_one_that_runs_once() -> None:
    began, work = list[str](), BackgroundWork()

    async def done() -> None:
        began.append("done")

    async def broken() -> None:
        began.append("broken")
        raise RuntimeError("fault")

    async with work.running({"done": done}, once={"broken": broken}):
        await wait_until(lambda: len(began) == 2)
        await asyncio.sleep(0.1)  # time for ten more starts
    assert sorted(began) == ["broken", "done"]
    assert work.note() is None


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
        async with side.running({"dispatcher": dispatch}):
            await wait_until(lambda: began == 2, timeout=30)
            assert "part 'dispatcher' ended and is started again: RuntimeError: the transport is closed" in (side.note() or "")


async def test_a_part_of_a_service_that_has_done_its_work_ends(nats_url: str, tmp_path: Path) -> None:
    began = 0

    async def done() -> None:
        nonlocal began
        began += 1

    async with ledger_log(nats_url) as log, migrated(f"sqlite:{tmp_path / 'read.db'}", MODEL) as store:
        frames = CommitFrames(log, {}, lambda _: ())
        side = ReadSide(connection=log.connection, log=log, store=store, model=MODEL, frames=frames, max_lag=60)
        async with side.running({"done": done}):
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
            assert "part 'event stream' ended" in (side.note() or "")
            await side.commands.execute(ACCOUNT, "b", Opened("bob"))
            await wait_until(lambda: side.hub.sequence == 2, timeout=30)
            shown = [frame.position.sequence async for some in frames.replay(Position(0, 0), 2) for frame in some]
    assert shown == [1, 2]
