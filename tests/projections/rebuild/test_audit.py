"""An audit of a log: states are compared with a fold of the events, commits with the one before them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import pytest_asyncio

from eventlog import Commit
from eventlog.admin import scrub
from eventlog.testing.memory import MemoryLog
from projections.migrations import Migrations
from projections.projector.continuity import MARK_EVERY
from projections.projector.projector import Projector
from projections.rebuild import verify as module
from projections.rebuild.verify import audit
from projections.store import Store
from projections.stores.sqlite import SQLiteStore
from tests.support.readside import ledger
from tests.support.readside.ledger import ACCOUNT, MODEL, Book, Booked, Opened
from tests.support.readside.projecting import proven


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(ledger.REGISTRY)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, MODEL).up()
        yield store


async def commit_at(log: MemoryLog, sequence: int) -> Commit:
    commit = await log.at(sequence)
    assert commit is not None
    return commit


@pytest.mark.parametrize("kept", [1, 100_000])
async def test_a_sound_log_has_no_findings_and_the_digest_of_the_tables(
    log: MemoryLog, store: Store, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Also if the preceding commit has to be read a second time."""
    monkeypatch.setattr(scrub.CommitChecker.__init__, "__kwdefaults__", {"share": 1.0, "most": kept})
    monkeypatch.setattr(module, "_BATCH", 100)
    end = 2 * MARK_EVERY + 3
    await Book(log).append_randomly(end, accounts=50, seed=1)
    await Projector(log, store, MODEL).run(until=end)
    (digest,) = {c.digest for c in (await store.checkpoints()).values()}
    found = await audit(log, MODEL, until=end, marks=proven(await store.marks(MODEL.stream), end, digest))
    assert (found.sequence, found.problems, found.digest) == (end, [], digest)


async def test_a_state_that_contradicts_its_events_is_named_with_both_values(log: MemoryLog) -> None:
    """A correctly guarded commit, which the tables were made from: they equal a fold of the states."""
    book = Book(log)
    await book.append("a", Opened("ann"))
    proposal = book.proposal("a", Booked(21))
    lie = attrs.evolve(proposal.commit.state, balance=521)
    book.stored("a", await log.append(attrs.evolve(proposal, commit=attrs.evolve(proposal.commit, state=lie))))
    book.states["a"] = lie
    await book.append("a", Booked(1))
    found = await audit(log, MODEL, until=3)
    assert found.problems == ["sequence 2, ledger.account.a: its events give balance 21, its state says 521"]


async def test_what_is_not_bound_to_the_commit_before_it_is_named(log: MemoryLog) -> None:
    from eventlog.commands import Commands  # noqa: PLC0415 - for this one alone

    commands = Commands(log)
    for id_ in ("a", "b", "c"):
        await commands.execute(ACCOUNT, id_, Opened("ann"))
        await commands.execute(ACCOUNT, id_, Booked(1))
    await log.tamper(1, (await commit_at(log, 1)).data + b" ")
    await log.publish("ledger.account.b", (await commit_at(log, 4)).data)
    assert (await audit(log, MODEL, until=7)).problems == [
        "sequence 2, ledger.account.a: it was decided on another commit than the one at sequence 1",
        "sequence 7, ledger.account.b: it was stored without a guard, past the event log",
    ]


async def test_a_commit_that_was_exchanged_is_found_by_the_marks(log: MemoryLog, store: Store) -> None:
    end = 3 * MARK_EVERY
    await Book(log).append_randomly(end, accounts=50, seed=1)
    await Projector(log, store, MODEL).run(until=end)
    (digest,) = {c.digest for c in (await store.checkpoints()).values()}
    at = MARK_EVERY + 5
    await log.tamper(at, (await commit_at(log, at)).data + b" ")
    found = await audit(log, MODEL, until=end, marks=proven(await store.marks(MODEL.stream), end, digest))
    assert found.diverged == (MARK_EVERY + 1, 2 * MARK_EVERY)
    await log.tamper(at, (await commit_at(log, at)).data[:-1])
    await log.tamper(end, (await commit_at(log, end)).data + b" ")
    found = await audit(log, MODEL, until=end, marks=proven((), end, digest))
    assert found.diverged == (1, end)
