"""A log that is not the one the tables were made from is never applied, whatever its sequence numbers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from eventlog import LogDiverged, SequenceGap
from eventlog.support.chain import beginning, fingerprints, rolled, text_of
from eventlog.testing.memory import MemoryLog
from projections.errors import ProjectorStopped, StoreDamaged, StoreForeign
from projections.migrations import Migrations
from projections.projector.continuity import MARK_EVERY, Tip
from projections.projector.projector import Projector
from projections.rebuild.report import standing
from projections.rebuild.verify import dump
from projections.store import Checkpoint, Mark, Store
from projections.stores.databases import reader_at, store_at
from projections.stores.sqlite import SQLiteStore
from tests.support.readside import ledger
from tests.support.readside.ledger import Book, Opened


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(ledger.REGISTRY)


@pytest_asyncio.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    async with store_at(database_url) as store:
        await Migrations(store, ledger.MODEL).up()
        yield store


async def written(log: MemoryLog, count: int, seed: int = 1) -> Book:
    book = Book(log)
    await book.append_randomly(count, accounts=10, seed=seed)
    return book


async def project(log: MemoryLog, store: Store) -> None:
    await Projector(log, store, ledger.MODEL, batch=700).run(until=(await log.head()).last)


async def refused(log: MemoryLog, store: Store) -> ProjectorStopped:
    """The error of a projector that begins; the tables stay as they are."""
    before, checkpoints = await dump(store, ledger.MODEL), await store.checkpoints()
    async with asyncio.timeout(20):
        with pytest.raises(ProjectorStopped) as raised:
            await Projector(log, store, ledger.MODEL).run()
    assert await dump(store, ledger.MODEL) == before
    assert await store.checkpoints() == checkpoints
    return raised.value


async def test_a_tail_that_was_cut_and_has_grown_again_is_refused_at_the_start(log: MemoryLog, store: Store) -> None:
    """One lost commit whose number another one has taken. Sequence and incarnation are the same as before."""
    book = await written(log, 50)
    await project(log, store)
    await log.cut(49)
    await book.append("new", Opened("eve"))
    error = await refused(log, store)
    assert isinstance(error.__cause__, LogDiverged)
    assert "sequence 50 is another commit now" in str(error)
    assert "the first difference is between sequence 1 and 50" in str(error)
    assert "Keep the database" in str(error)


async def test_an_older_backup_under_newer_tables_stays_refused_when_it_has_grown_past_them(log: MemoryLog, store: Store) -> None:
    await written(log, 50)
    await project(log, store)
    await log.cut(30)
    for number in range(40):
        await Book(log).append(f"later-{number}", Opened("eve"))
    assert (await log.head()).last == 70
    error = await refused(log, store)
    assert isinstance(error.__cause__, LogDiverged)


async def test_it_is_told_where_the_logs_part(log: MemoryLog, store: Store) -> None:
    """By the marks, one per 1,024 commits."""
    await written(log, 5 * MARK_EVERY)
    await project(log, store)
    await log.cut(3 * MARK_EVERY + 7)
    for number in range(3 * MARK_EVERY):
        await Book(log).append(f"later-{number}", Opened("eve"))
    error = await refused(log, store)
    assert f"the first difference is between sequence {3 * MARK_EVERY + 1} and {4 * MARK_EVERY}" in str(error)


async def test_a_running_projector_stops_where_the_log_is_exchanged_behind_it(log: MemoryLog, store: Store) -> None:
    book = await written(log, 50)
    projector = Projector(log, store, ledger.MODEL)
    running = asyncio.create_task(projector.run())
    await projector.wait_for(50, 20)
    before = await dump(store, ledger.MODEL)
    await log.cut(49)
    await book.append("new", Opened("eve"))
    await book.append("newer", Opened("eve"))
    async with asyncio.timeout(20):
        with pytest.raises(ProjectorStopped, match="sequence 50 is another commit now"):
            await running
    assert await dump(store, ledger.MODEL) == before


async def test_the_digests_at_the_checkpoint_are_those_of_the_whole_log(log: MemoryLog, store: Store) -> None:
    """However it was cut into batches, and over restarts; kept in the transaction that moves the checkpoint."""
    book = await written(log, 2 * MARK_EVERY + 5)
    for until in (700, MARK_EVERY, 2000):
        await Projector(log, store, ledger.MODEL, batch=333).run(until=until)
    await project(log, store)
    await book.append("last", Opened("ann"))
    await project(log, store)
    commits = [commit async for some in log.follow(after=0, until=2 * MARK_EVERY + 6) for commit in some]
    begin, stream, made = beginning("LEDGER"), "LEDGER", fingerprints(commits)
    assert {(c.digest, c.record) for c in (await store.checkpoints()).values()} == {
        (text_of(rolled(begin, made)), commits[-1].digest)
    }
    assert await store.marks(stream) == [
        Mark(stream, at, text_of(rolled(begin, made[:at])), commits[at - 1].digest) for at in (MARK_EVERY, 2 * MARK_EVERY)
    ]
    assert [mark.sequence for mark in await store.marks(stream, above=MARK_EVERY)] == [2 * MARK_EVERY]


async def test_an_older_backup_is_refused_though_a_projection_begins_at_its_start(log: MemoryLog, store: Store) -> None:
    """Reading begins before the difference. The projection that has passed it knows another commit there."""
    await written(log, 50)
    await project(log, store)
    await log.cut(30)
    for number in range(40):
        await Book(log).append(f"later-{number}", Opened("eve"))
    await store.forget(ledger.MODEL.projections[:1])
    with pytest.raises(ProjectorStopped, match="sequence 50 is another commit now"):
        await Projector(log, store, ledger.MODEL).run()


async def test_a_projection_that_begins_anew_is_given_the_commits_that_the_others_had(log: MemoryLog, store: Store) -> None:
    """A commit that was exchanged in the middle is found when it is read a second time."""
    await written(log, MARK_EVERY + 50)
    await project(log, store)
    commit = await log.at(20)
    assert commit is not None
    await log.tamper(20, commit.data + b" ")
    await store.forget(ledger.MODEL.projections[:1])
    with pytest.raises(ProjectorStopped, match=f"one of the sequences 1 to {MARK_EVERY} is another commit"):
        await Projector(log, store, ledger.MODEL).run()


async def test_tables_of_another_version_are_not_read_and_the_remedy_is_named(
    log: MemoryLog, store: Store, database_url: str
) -> None:
    """Neither by a service nor by a program that only reads; they stay as they are."""
    await written(log, 50)
    await project(log, store)
    await statement(store, "ALTER TABLE projection_checkpoints DROP COLUMN digest")
    await store.close()
    for opened in (store_at(database_url), reader_at(database_url)):
        with pytest.raises(StoreForeign, match="another version of this program, which are not read: remove the database"):
            await opened.open()


async def test_a_checkpoint_that_has_lost_its_digest_is_damage(log: MemoryLog, store: Store) -> None:
    await written(log, 50)
    await project(log, store)
    await statement(store, "UPDATE projection_checkpoints SET digest = NULL")
    with pytest.raises(ProjectorStopped, match="have no digest that can be read"):
        await project(log, store)


async def test_a_record_that_cannot_be_read_stops_it_and_is_named(log: MemoryLog, store: Store) -> None:
    """Also if it is the last one: nothing follows that would show the hole."""
    await written(log, 50)
    await Projector(log, store, ledger.MODEL).run(until=49)
    log.damage(50)
    error = await refused(log, store)
    assert isinstance(error.__cause__, SequenceGap)
    assert "sequence 50 cannot be read" in str(error)


async def statement(store: Store, sql: str) -> None:
    if isinstance(store, SQLiteStore):
        await store._run(lambda: [store._opened_writer().execute(part) for part in sql.split(";")])
    else:
        await (await store._writer()).execute(sql)  # type: ignore[attr-defined]


@pytest.mark.parametrize("digests", [("a1", "a2"), ("zz", "zz"), (None, None)], ids=["different", "not a digest", "lost"])
def test_checkpoints_that_contradict_each_other_are_damage_of_the_tables(digests: tuple[str | None, str | None]) -> None:
    """Not of the log: one of two projections at one sequence has another digest, or one that cannot be read."""
    checkpoints = [
        Checkpoint(projection=name, version=1, incarnation="i", sequence=4, applied=4, record="r", digest=digest)
        for name, digest in zip(("one", "two"), digests, strict=True)
    ]
    with pytest.raises(StoreDamaged, match="the checkpoints at sequence 4 have"):
        Tip.at("LEDGER", 4, checkpoints)


async def test_the_status_names_a_record_that_holds_a_projection_up(log: MemoryLog, store: Store) -> None:
    """A later one does not yet."""
    await written(log, 10)
    await Projector(log, store, ledger.MODEL).run(until=5)
    log.damage(8)
    assert {one.problem for one in (await standing(store, None, log, ledger.MODEL)).projections} == {None}
    log.damage(6)
    found = (await standing(store, None, log, ledger.MODEL)).projections
    assert {(one.position, one.lag_events, one.problem) for one in found} == {(5, 5, "sequence 6 of the log cannot be read")}
