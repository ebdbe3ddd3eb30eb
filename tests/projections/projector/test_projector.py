"""Promises of the projector, on a log in memory whose faults can be chosen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog import Commit, Head, IncarnationChanged, LogTruncated, SequenceGap, Unavailable
from eventlog.testing.memory import MemoryLog
from projections.errors import Behind, CheckpointMoved, ProjectorStopped, StoreUnavailable
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.model import Put, ReadModel
from projections.projector.projector import Projector
from projections.projector.status import State
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import CheckpointOutcome, KeyRecord, Step, Store
from projections.stores.databases import store_at
from projections.stores.sqlite import SQLiteStore
from tests.support.readside import ledger
from tests.support.readside.ledger import Book, Booked, Closed, Opened
from tests.support.waiting import wait_until


class FaultyLog(MemoryLog):
    """A log whose reads can be made to fail."""

    def __init__(self) -> None:
        super().__init__(ledger.REGISTRY)
        self.unavailable = False
        self.first = 1
        self.skipped: set[int] = set()
        self.repeated: set[int] = set()
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
            yield [c for c in commits if c.sequence not in self.skipped for _ in range(2 if c.sequence in self.repeated else 1)]


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


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog()


@pytest.fixture
def book(log: FaultyLog) -> Book:
    return Book(log)


@pytest_asyncio.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    async with store_at(database_url) as store:
        await Migrations(store, ledger.MODEL).up()
        yield store


@pytest.fixture
def faults(store: Store) -> Faults:
    return Faults(store)


@asynccontextmanager
async def running(projector: Projector) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(projector.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


async def stopped(projector: Projector) -> ProjectorStopped:
    """The reason that it stops for; status, waiters and task agree on it."""
    async with asyncio.timeout(20):
        with pytest.raises(ProjectorStopped) as caught:
            await projector.run()
    status = projector.status()
    assert status.state is State.STOPPED
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
        assert projector.status().state is State.LIVE


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
        await keys.find("k1", "ledger.account.a", 1)
    async with running(projector):
        assert await CommandKeys(projector, store).find("k1", "ledger.account.a", 1) == KeyRecord(
            "k1", "f1", "ledger.account.a", 1
        )
        assert await keys.find("k2", "ledger.account.a", 0) is None
    with pytest.raises(Unavailable, match="ended"):
        await keys.find("k1", "ledger.account.a", 2)


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


# No commit is skipped


@pytest.mark.parametrize("fault", ["skipped", "repeated"])
async def test_a_sequence_that_is_missing_or_comes_twice_stops_it(log: FaultyLog, book: Book, store: Store, fault: str) -> None:
    """In the middle of a batch, and no change of that batch is written."""
    await book.append_randomly(60, accounts=10, seed=1, batch=10)
    getattr(log, fault).add(45)
    projector = Projector(log, store, ledger.MODEL, batch=20)
    error = await stopped(projector)
    assert isinstance(error.__cause__, SequenceGap)
    assert f"expected sequence {45 if fault == 'skipped' else 46}, found {46 if fault == 'skipped' else 45}" in str(error)
    assert projector.position == 40
    getattr(log, fault).clear()
    await Projector(log, store, ledger.MODEL).run(until=60)
    assert await equals_a_fold(log, store)


async def test_a_hole_at_the_border_of_two_batches_stops_it(log: FaultyLog, book: Book, store: Store) -> None:
    await book.append_randomly(40, accounts=10, seed=1, batch=10)
    log.skipped.add(21)
    assert isinstance((await stopped(Projector(log, store, ledger.MODEL, batch=20))).__cause__, SequenceGap)


async def test_a_stream_that_was_created_anew_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """F19: at the start, however long the new one is; the tables stay as they are."""
    await book.append_randomly(50, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=50)
    before = await dump(store, ledger.MODEL)
    await log.create_anew()
    for commits in (0, 80):
        await Book(log).append_randomly(commits, accounts=10, seed=2)
        error = await stopped(Projector(log, store, ledger.MODEL))
        assert isinstance(error.__cause__, IncarnationChanged)
        assert "stream LEDGER: the stream was recreated" in str(error)
        assert "set the database aside" in str(error)
    assert await dump(store, ledger.MODEL) == before


async def test_a_stream_that_is_created_anew_stops_a_running_projector(log: FaultyLog, book: Book, store: Store) -> None:
    await book.append_randomly(50, accounts=10, seed=1)
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector) as task:
        await projector.wait_for(50, 20)
        await log.create_anew()
        with pytest.raises(ProjectorStopped, match="recreated"):
            await asyncio.wait_for(task, 20)
    assert projector.status().state is State.STOPPED


async def test_a_stream_that_lost_its_end_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """The checkpoint is ahead of the log, in the same incarnation. The error differs from that for a recreated stream."""
    await book.append_randomly(50, accounts=10, seed=1)
    await Projector(log, store, ledger.MODEL).run(until=50)
    del log._commits[-1]
    error = await stopped(Projector(log, store, ledger.MODEL))
    assert isinstance(error.__cause__, LogTruncated)
    assert "is at sequence 50, ahead of the log, which ends at 49" in str(error)


async def test_a_stream_that_lost_its_beginning_is_refused(log: FaultyLog, book: Book, store: Store) -> None:
    """A reader that still needs the beginning refuses it. A reader that is past it continues."""
    await book.append_randomly(50, accounts=10, seed=1)
    log.first = 31
    error = await stopped(Projector(log, store, ledger.MODEL))
    assert isinstance(error.__cause__, LogTruncated)
    assert "needs sequence 1, but the log begins at 31" in str(error)
    log.first = 1
    await Projector(log, store, ledger.MODEL).run(until=30)
    log.first = 31
    await Projector(log, store, ledger.MODEL).run(until=50)


async def test_two_projectors_on_one_file_cannot_both_go_on(log: FaultyLog, book: Book, tmp_path: Path) -> None:
    """The second one finds the checkpoint moved, though it has the very same rows. The first one continues."""
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, ledger.MODEL).up()
        await only_one_goes_on(log, book, store, Faults(store))


async def only_one_goes_on(log: FaultyLog, book: Book, store: Store, faults: Faults) -> None:
    await book.append_randomly(20, accounts=10, seed=1)
    both = [Projector(log, store, ledger.MODEL) for _ in range(2)]
    faults.gate.clear()
    async with running(both[0]) as first, running(both[1]) as second:
        await wait_until(lambda: faults.tries == 2)
        faults.gate.set()
        done, _ = await asyncio.wait({first, second}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert isinstance(done.pop().exception(), CheckpointMoved)
        await book.append_randomly(20, accounts=10, seed=2)
        (alive,) = (projector for projector in both if projector.status().state is not State.STOPPED)
        await alive.wait_for(40, 20)
    assert await equals_a_fold(log, store)


# Faults of the database


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
    assert set(await store.checkpoints()) == {"accounts"}
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
        await wait_until(lambda: projector.status().state is State.WAITING)
        assert projector.status().error == "the disk is full"
        assert projector.position == 1
        tries = faults.tries
        await wait_until(lambda: faults.tries > tries + 1)
        faults.away = False
        await projector.wait_for(2, 20)
        assert projector.status().state is State.LIVE
        assert projector.status().error is None
    assert await equals_a_fold(log, store)


async def test_a_log_that_is_away_is_waited_for(log: FaultyLog, book: Book, store: Store) -> None:
    """At the start and later on. Unknown figures are not reported."""
    log.unavailable = True
    projector = Projector(log, store, ledger.MODEL)
    async with running(projector):
        await wait_until(lambda: projector.status().state is State.WAITING)
        assert projector.status().error == "nobody there"
        assert projector.status().lag_events is None
        log.unavailable = False
        await book.append("a", Opened("ann"))
        await projector.wait_for(1, 20)
        assert projector.status().lag_events == 0
        log.unavailable = True
        await book.append("a", Booked(3))
        await wait_until(lambda: projector.status().state is State.WAITING and projector.status().lag_seconds is None)
        log.unavailable = False
        await projector.wait_for(2, 60)
        await wait_until(lambda: projector.status().state is State.LIVE)
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
        await wait_until(lambda: projector.status().state is State.CATCHING_UP)
        faults.gate.set()
        await projector.wait_for(3, 20)
        status = projector.status()
        assert (status.state, status.lag_events, status.lag_seconds, status.applied) == (State.LIVE, 0, 0.0, 3)
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
    assert projector.status().state is State.STOPPED
