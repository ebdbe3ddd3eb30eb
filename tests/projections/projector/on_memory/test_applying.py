"""The projector applies each commit once and in order. Its waiters are woken at the right moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog import Commit, Unavailable
from eventlog.commands.loading import KeyUse
from projections.errors import Behind, ProjectorStopped
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from projections.store import Store
from projections.stores.sqlite import SQLiteStore
from tests.projections.projector.on_memory.faulty import Faults, FaultyLog, equals_a_fold, stopped
from tests.support.readside import ledger
from tests.support.readside.ledger import Book, Booked, Closed, Opened
from tests.support.readside.projecting import running
from tests.support.waiting import wait_until

# Applying


async def test_the_read_model_is_what_the_log_says(log: FaultyLog, book: Book, store: Store) -> None:
    """Rows, deletions, and the number of applied commits, in batches of any size."""
    await book.append("a", Opened("ann"), Booked(5))
    await book.append("a", Booked(7, "rent"), Booked(-2))
    await book.append("b", Opened("bob"))
    await book.append("b", Closed())
    await Projector(log, store, ledger.MODEL, batch=3).run(until=4)
    assert await store.fetch("SELECT id, owner, balance FROM accounts") == [{"id": "a", "owner": "ann", "balance": 10}]
    entries = await store.fetch("SELECT number, amount, memo FROM entries ORDER BY number")
    assert [tuple(row.values()) for row in entries] == [(1, 5, None), (2, 7, "rent"), (3, -2, None)]
    assert await store.fetch("SELECT * FROM owners") == [{"owner": "ann", "account": "a"}]
    assert {(c.sequence, c.applied, c.incarnation) for c in (await store.checkpoints()).values()} == {(4, 4, log.incarnation)}


async def test_commits_are_shown_once_and_in_order(log: FaultyLog, book: Book, store: Store) -> None:
    """Over restarts too, and never before they can be read."""
    shown: list[int] = []

    def show(commits: Sequence[Commit]) -> None:
        assert projector.position < commits[-1].sequence
        shown.extend(commit.sequence for commit in commits)

    for end in (100, 250, 251):
        await book.append_randomly(end - len(shown), accounts=20, seed=end, batch=15)
        projector = Projector(log, store, ledger.MODEL, batch=7, on_applied=show)
        await projector.run(until=end)
    assert shown == list(range(1, 252))
    assert await equals_a_fold(log, store)


async def test_what_is_appended_can_be_read_when_the_wait_is_over(log: FaultyLog, book: Book, store: Store) -> None:
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        for amount in range(50):
            appended = await book.append("a", *(() if amount else (Opened("ann"),)), Booked(amount))
            await projector.wait_for(appended.sequence, 20)
            row = await store.fetch_one("SELECT max(amount) AS newest FROM entries")
            assert row == {"newest": amount}
        assert projector.status().state is ProjectorState.LIVE


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), cuts=st.lists(st.integers(1, 119), max_size=6), batch=st.integers(1, 60))
def test_batches_and_restarts_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int], batch: int
) -> None:
    """With any division of the log into batches and runs, rows, keys and counts equal one run."""

    async def check() -> None:
        log = FaultyLog()
        await Book(log).append_randomly(120, accounts=6, seed=seed, batch=5)
        async with SQLiteStore(tmp_path_factory.mktemp("cut") / "read.db") as store:
            await Migrations(store, ledger.MODEL).up()
            for end in [*sorted(cuts), 120]:
                await Projector(log, store, ledger.MODEL, batch=batch).run(until=end)
            assert await equals_a_fold(log, store)

    asyncio.run(check())


async def test_idempotency_keys_are_found_when_their_commit_is_applied(log: FaultyLog, book: Book, store: Store) -> None:
    """The lookup waits for the sequence that it needs, and reports if it cannot have it."""
    projector = Projector(log, store, ledger.MODEL)
    keys = CommandKeys(projector, store, timeout=0.05)
    await book.append("a", Opened("ann"), key="k1", fingerprint="f1")
    with pytest.raises(Unavailable, match="not reached within"):
        await keys.find(["k1"], "ledger.account.a", 1)
    async with running(projector):
        found = await CommandKeys(projector, store).find(["k1", "k2"], "ledger.account.a", 1)
        assert found == {"k1": KeyUse("k1", "f1", "ledger.account.a", 1)}
    with pytest.raises(Unavailable, match="ended"):
        await keys.find(["k1"], "ledger.account.a", 2)


# Waiting


async def test_who_waits_too_long_hears_how_far_it_is(log: FaultyLog, book: Book, store: Store) -> None:
    projector = Projector(log, store, ledger.MODEL)
    await book.append("a", Opened("ann"))
    async with running(projector):
        await projector.wait_for(1, 20)
        with pytest.raises(Behind, match="is at sequence 1, 9 was asked for"):
            await projector.wait_for(9, 0.02)


async def test_all_who_wait_are_woken_by_the_transaction_they_wait_for(log: FaultyLog, book: Book, store: Store) -> None:
    """No sooner, no later, in any order of calls. Waiters that gave up in between do not matter."""
    projector = Projector(log, store, ledger.MODEL, batch=1)
    woken: list[int] = []

    async def wait(sequence: int, seconds: float) -> None:
        await projector.wait_for(sequence, seconds)
        assert projector.position >= sequence
        woken.append(sequence)

    waiting = [asyncio.create_task(wait(sequence, 60)) for sequence in (7, 2, 5, 2, 9)]
    impatient = [asyncio.create_task(wait(8, 0.01)) for _ in range(100)]
    assert all(isinstance(result, Behind) for result in await asyncio.gather(*impatient, return_exceptions=True))
    async with running(projector):
        for number in range(9):
            await book.append(f"a{number}", Opened(f"owner {number}"))
        async with asyncio.timeout(20):
            await asyncio.gather(*waiting)
    assert woken == [2, 2, 5, 7, 9]


async def test_names_that_change_hands_within_a_batch_are_no_poison(log: FaultyLog, book: Book, store: Store) -> None:
    """Only the last row of each key is written, and for a moment two rows may want one unique name: then commit by commit."""
    await book.append("a", Opened("ann"))
    await book.append("b", Opened("bob"))
    await Projector(log, store, ledger.MODEL).run(until=2)
    await book.append("a", Opened("nobody"))
    await book.append("b", Opened("ann"))
    await book.append("a", Opened("bob"))
    await Projector(log, store, ledger.MODEL).run(until=5)
    assert await store.fetch("SELECT id, owner FROM accounts ORDER BY id") == [
        {"id": "a", "owner": "bob"},
        {"id": "b", "owner": "ann"},
    ]


async def test_an_error_of_who_is_shown_the_commits_is_not_swallowed(log: FaultyLog, book: Book, store: Store) -> None:
    def show(_: Sequence[Commit]) -> None:
        raise ValueError("cannot be shown")

    await book.append("a", Opened("ann"))
    assert "cannot be shown" in str(await stopped(Projector(log, store, ledger.MODEL, on_applied=show)))


# Figures


async def test_lag_is_the_age_of_what_is_not_applied(log: FaultyLog, book: Book, store: Store, faults: Faults) -> None:
    """In commits and in seconds, by the commits' own times; nothing lags behind an idle log, however old its last commit."""
    clock = ledger.EPOCH + timedelta(days=3)
    projector = Projector(log, store, ledger.MODEL, now=lambda: clock)
    await book.append("a", Opened("ann"))
    async with running(projector):
        await projector.wait_for(1, 20)
        status = projector.status()
        assert (status.lag_events, status.lag_seconds, status.head, status.applied) == (0, 0.0, 1, 1)
        faults.gate.clear()
        book.time = clock - timedelta(seconds=40)
        await book.append("a", Booked(1))
        await wait_until(lambda: projector.status().lag_events == 1)
        assert projector.status().lag_seconds == pytest.approx(40, abs=0.1)
        clock += timedelta(seconds=20)
        await book.append("a", Booked(1))
        await wait_until(lambda: projector.status().lag_events == 2)
        assert projector.status().lag_seconds == pytest.approx(60, abs=0.1)
        await wait_until(lambda: projector.status().state is ProjectorState.CATCHING_UP)
        faults.gate.set()
        await projector.wait_for(3, 20)
        status = projector.status()
        assert (status.state, status.lag_events, status.lag_seconds, status.applied) == (ProjectorState.LIVE, 0, 0.0, 3)
        assert 0 < status.rate <= 3 / 0.1
        assert status.since <= clock


async def test_what_waits_for_the_database_is_written_together(log: FaultyLog, book: Book, store: Store, faults: Faults) -> None:
    """The slower the database, the larger the batches: it catches up by itself."""
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        await book.append("a", Opened("ann"))
        await projector.wait_for(1, 20)
        faults.gate.clear()
        for _ in range(200):
            await book.append("a", Booked(1))
        faults.gate.set()
        await projector.wait_for(201, 20)
    assert len(faults.sizes) <= 6
    assert sum(faults.sizes) == 201


async def test_a_projector_that_is_ended_tells_who_waits(log: FaultyLog, store: Store) -> None:
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        waiting = asyncio.create_task(projector.wait_for(1, 20))
        await asyncio.sleep(0)
    with pytest.raises(ProjectorStopped, match="ended"):
        await waiting
    assert projector.status().state is ProjectorState.STOPPED
