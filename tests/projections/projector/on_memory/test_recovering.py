"""The projector fills new tables, and continues after a database or a log was away."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from projections.errors import Behind, StoreUnavailable
from projections.migrations import Migrations
from projections.model import Put
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.store import CheckpointOutcome, Store
from tests.projections.projector.on_memory.faulty import Faults, FaultyLog, equals_a_fold
from tests.support.readside import ledger
from tests.support.readside.ledger import Book, Booked, Opened
from tests.support.readside.projecting import running
from tests.support.waiting import wait_until

# New versions, migrations


async def test_a_projection_of_a_new_version_begins_anew(log: FaultyLog, book: Book, store: Store) -> None:
    """Only this one. It has the rows of the new version, and no event is shown a second time."""
    await book.append_randomly(80, accounts=40, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=80)
    await book.append_randomly(20, accounts=5, seed=2)
    accounts, owners = ledger.PROJECTIONS
    changed = attrs.evolve(
        owners,
        version=2,
        handlers={
            ledger.CATEGORY: lambda commit: [
                Put(change.table, (change.row[0], change.row[1].upper())) if isinstance(change, Put) else change
                for change in ledger.owner_changes(commit)
            ]
        },
    )
    model = attrs.evolve(ledger.MODEL, projections=(accounts, changed))
    shown: list[int] = []
    projector = Projector(log, store, model, batch=30, on_applied=lambda commits: shown.extend(c.sequence for c in commits))
    await projector.run(until=100)
    assert shown == list(range(81, 101))
    assert all(row["account"].startswith("ACCOUNT-") for row in await store.fetch("SELECT account FROM owners"))
    assert await equals_a_fold(log, store, model)


async def test_the_position_is_that_of_the_projection_farthest_behind(
    log: FaultyLog, book: Book, store: Store, faults: Faults
) -> None:
    await book.append_randomly(80, accounts=10, seed=1)
    await Projector(log, store, attrs.evolve(ledger.MODEL, projections=ledger.PROJECTIONS[:1])).run(until=80)
    faults.gate.clear()
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        await wait_until(lambda: projector.status().head == 80)
        assert projector.position == 0
        with pytest.raises(Behind):
            await projector.wait_for(1, 0.01)
        faults.gate.set()
        await projector.wait_for(80, 20)
    assert await equals_a_fold(log, store)


async def test_tables_that_are_taken_away_and_made_again_fill_themselves(log: FaultyLog, book: Book, store: Store) -> None:
    """down, down, up: only the projections of these tables restart."""
    await book.append_randomly(50, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=50)
    migrations = Migrations(store, ledger.MODEL)
    await migrations.down()
    await migrations.down()
    assert set(await store.checkpoints()) == {"accounts", "command_keys"}
    await migrations.up()
    await Projector(log, store, ledger.MODEL).run(until=50)
    assert await equals_a_fold(log, store)


# Faults that pass


async def test_a_database_that_is_away_is_waited_for(log: FaultyLog, book: Book, store: Store, faults: Faults) -> None:
    """F10: it stays on its checkpoint, reports the reason, retries at intervals, and continues by itself."""
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        await book.append("a", Opened("ann"))
        await projector.wait_for(1, 20)
        faults.away = True
        await book.append("a", Booked(3))
        await wait_until(lambda: projector.status().state is ProjectorState.WAITING)
        assert projector.status().error == "the disk is full"
        assert projector.position == 1
        tries = faults.tries
        await wait_until(lambda: faults.tries > tries + 1)
        faults.away = False
        await projector.wait_for(2, 20)
        assert projector.status().state is ProjectorState.LIVE
        assert projector.status().error is None
    assert await equals_a_fold(log, store)


async def test_a_log_that_is_away_is_waited_for(log: FaultyLog, book: Book, store: Store) -> None:
    """At the start and later on. Unknown figures are not reported."""
    log.unavailable = True
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        await wait_until(lambda: projector.status().state is ProjectorState.WAITING)
        assert projector.status().error == "nobody there"
        assert projector.status().lag_events is None
        log.unavailable = False
        await book.append("a", Opened("ann"))
        await projector.wait_for(1, 20)
        assert projector.status().lag_events == 0
        log.unavailable = True
        await book.append("a", Booked(3))
        await wait_until(lambda: projector.status().state is ProjectorState.WAITING and projector.status().lag_seconds is None)
        log.unavailable = False
        await projector.wait_for(2, 60)
        await wait_until(lambda: projector.status().state is ProjectorState.LIVE)
    assert await equals_a_fold(log, store)


async def test_a_lost_answer_of_the_database_is_no_second_application(log: FaultyLog, book: Book, store: Store) -> None:
    """The transaction is stored, and only its answer was lost: the retry finds it done."""
    advance, lost = store.advance, 0

    async def forgetful(*arguments: Any) -> CheckpointOutcome:
        nonlocal lost
        outcome = await advance(*arguments)
        if not lost:
            lost += 1
            raise StoreUnavailable("the answer was lost")
        return outcome

    store.advance = forgetful  # type: ignore[assignment,method-assign] # a fault for this one test
    await book.append_randomly(30, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=30)
    assert lost == 1
    assert await equals_a_fold(log, store)
