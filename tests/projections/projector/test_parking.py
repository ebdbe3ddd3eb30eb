"""Commits that cannot be applied: their aggregates are parked, the others continue, and no commit is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import attrs
import pytest
import pytest_asyncio

from eventlog import Commit, Unavailable
from eventlog.commands.loading import KeyUse
from eventlog.testing.memory import MemoryLog
from projections.errors import NotParked
from projections.keys import CommandKeys, find_uses
from projections.migrations import Migrations
from projections.model import Change, Delete, Put, ReadModel
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, dump, replayed_copy
from projections.store import Parked, Store
from projections.stores.postgres import PostgresStore
from tests.support.readside import ledger
from tests.support.readside.ledger import FIXED, MODEL, Book, Booked, Closed, Opened
from tests.support.readside.postgres import either_database

POISON = Booked(1, "poison")
REFUSED = Booked(-1000)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(ledger.REGISTRY)


@pytest.fixture
def book(log: MemoryLog) -> Book:
    return Book(log)


@pytest_asyncio.fixture
async def store(either_store: Store | PostgresStore) -> Store:
    await Migrations(either_store, MODEL).up()
    return either_store


async def project(log: MemoryLog, store: Store, model: ReadModel = MODEL, batch: int = 10_000) -> Projector:
    projector = Projector(log, store, model, batch=batch)
    await projector.run(until=(await log.head()).last)
    return projector


async def assert_equals_a_fold(log: MemoryLog, store: Store, model: ReadModel) -> None:
    async with replayed_copy(log, model, until=(await log.head()).last) as fresh:
        assert await fresh.parked() == []
        difference = await compare(store, fresh, model)
        assert difference is None, str(difference)
        assert await dump(store, model) == await dump(fresh, model)


async def balance(store: Store, account: str) -> int | None:
    row = await store.fetch_one("SELECT balance FROM accounts WHERE id = $1", account)
    return None if row is None else int(row["balance"])


async def write_with_poison(book: Book) -> None:
    """Thirty commits, then `bad` with one poisonous entry (33) and three after it, among others."""
    await book.append_randomly(30, accounts=10, seed=1)
    await book.append("bad", Opened("eve"))
    await book.append("bad", Booked(5))
    await book.append("bad", POISON)
    await book.append("good", Opened("gus"), Booked(7))
    for amount in (1, 2, 3):
        await book.append("bad", Booked(amount), key=f"key-{amount}")
        await book.append("good", Booked(amount))
    await book.append_randomly(30, accounts=10, seed=2)


@pytest.mark.parametrize("batch", [1, 3, 10_000])
async def test_the_aggregate_is_parked_and_the_others_go_on(log: MemoryLog, book: Book, store: Store, batch: int) -> None:
    """Its rows have the state before the commit. Other projections, other aggregates and the keys have everything."""
    await write_with_poison(book)
    projector = await project(log, store, batch=batch)
    assert projector.position == 70
    (parked,) = await store.parked()
    assert (parked.projection, parked.subject, parked.sequence, parked.types) == ("accounts", "ledger.account.bad", 33, "Booked")
    assert parked.error == "RuntimeError('this entry cannot be applied')"
    assert "account_changes" in parked.traceback
    assert (parked.waiting, parked.last) == (4, 39)
    assert list(projector.parked.values()) == [parked]
    assert (await balance(store, "bad"), await balance(store, "good")) == (5, 13)
    assert await store.fetch("SELECT owner FROM owners WHERE account = 'bad'") == [{"owner": "eve"}]
    assert await find_uses(store, ["key-2"]) == {"key-2": KeyUse("key-2", None, "ledger.account.bad", 37)}
    applied = {name: checkpoint.applied for name, checkpoint in (await store.checkpoints()).items()}
    assert applied == {"accounts": 66, "owners": 70, "command_keys": 70}


@pytest.mark.parametrize("batch", [1, 3, 10_000])
async def test_after_a_fix_everything_is_as_if_nothing_had_been(log: MemoryLog, book: Book, store: Store, batch: int) -> None:
    """Over restarts and with more waiting commits, rows, keys and counts equal a clean fold."""
    await write_with_poison(book)
    await project(log, store, batch=batch)
    await book.append("bad", Booked(100))
    await book.append("new", Opened("nell"))
    projector = await project(log, store, FIXED, batch=batch)
    assert (await store.parked())[0].waiting == 5
    assert (await balance(store, "bad"), await balance(store, "new")) == (5, 0)
    done = await projector.unpark()
    assert [(one.subject, one.waiting) for one in done.freed] == [("ledger.account.bad", 5)]
    assert done.parked == []
    assert await store.parked() == []
    assert projector.parked == {}
    await assert_equals_a_fold(log, store, FIXED)
    await book.append("bad", Closed())
    await project(log, store, FIXED)
    await assert_equals_a_fold(log, store, FIXED)


async def test_a_long_queue_is_taken_up_in_parts_while_more_comes(log: MemoryLog, book: Book, store: Store) -> None:
    """A running projector applies other aggregates between the parts. New commits of the aggregate wait until then."""
    await book.append("bad", Opened("eve"), POISON)
    for amount in range(1200):
        await book.append("bad", Booked(amount))
    await project(log, store)
    projector = Projector(log, store, FIXED)
    running = asyncio.create_task(projector.run())
    await projector.wait_for(1201, 60)
    unparking = asyncio.create_task(projector.unpark("accounts", "ledger.account.bad"))
    for amount in range(50):
        await book.append("bad", Booked(amount))
        await book.append("good", *(() if amount else (Opened("gus"),)), Booked(1))
    await unparking
    await projector.wait_for(1301, 60)
    running.cancel()
    await asyncio.wait({running})
    assert await store.parked() == []
    await assert_equals_a_fold(log, store, FIXED)


async def test_what_cannot_be_applied_yet_stays_at_the_first_that_cannot_be(log: MemoryLog, book: Book, store: Store) -> None:
    """Without a fix there is no change. With a partial fix the commits are applied as far as possible."""
    await write_with_poison(book)
    await book.append("bad", Booked(9, "worse"))
    await book.append("bad", Booked(10))
    projector = await project(log, store)
    before = await store.parked()
    assert [one.waiting for one in before] == [6]
    done = await projector.unpark("accounts")
    assert (done.freed, [one.sequence for one in done.parked]) == ([], [33])
    assert [attrs.evolve(one, traceback="") for one in done.parked] == [attrs.evolve(one, traceback="") for one in before]
    projector = await project(log, store, with_poison("worse"))
    done = await projector.unpark()
    assert done.freed == []
    assert [(one.sequence, one.waiting, one.last) for one in await store.parked()] == [(71, 2, 72)]
    assert await balance(store, "bad") == 5 + 1 + 1 + 2 + 3
    with pytest.raises(NotParked, match="owners"):
        await projector.unpark("owners")
    assert (await (await project(log, store, FIXED)).unpark()).parked == []
    await assert_equals_a_fold(log, store, FIXED)


def with_poison(memo: str) -> ReadModel:
    """The ledger where only entries with that memo cannot be applied."""

    def changes(commit: Commit) -> Iterable[Change]:
        return ledger.account_changes(commit, poison=memo)

    accounts, owners = ledger.PROJECTIONS
    return attrs.evolve(MODEL, projections=(attrs.evolve(accounts, handlers={ledger.CATEGORY: changes}), owners))


async def test_a_row_that_the_database_refuses_is_found_in_a_large_batch(log: MemoryLog, book: Book, store: Store) -> None:
    """By halving, not one by one; the other projection, which it does refuse nothing, has the commit."""
    await book.append_randomly(3000, accounts=50, seed=1, batch=50)
    await book.append("bad", Opened("eve"), REFUSED)
    await book.append_randomly(3000, accounts=50, seed=2, batch=50)
    await book.append("bad", Booked(1))
    advance, calls = store.advance, 0

    async def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return await advance(*arguments)

    store.advance = counted  # type: ignore[assignment,method-assign] # to count, for this one test
    projector = await project(log, store)
    assert calls < 60
    (parked,) = await store.parked()
    assert (parked.projection, parked.sequence, parked.waiting, parked.last) == ("accounts", 3001, 2, 6002)
    assert "balance >= 0" in parked.error or "accounts_balance_check" in parked.error
    assert await store.fetch("SELECT owner FROM owners WHERE account = 'bad'") == [{"owner": "eve"}]
    assert (await projector.unpark()).freed == []
    assert [(one.sequence, one.waiting) for one in await store.parked()] == [(3001, 2)]


UNFIT: dict[str, Change] = {
    "a time as text": Put(ledger.ACCOUNTS, ("bad", "eve", 0, False, "2026-01-01T00:00:00Z", None)),
    "a table of another projection": Put(ledger.OWNERS, ("eve", "bad")),
    "a row without its key": Put(ledger.ENTRIES, ("bad", None, None, None, None, None)),
    "a list as key": Delete(ledger.ACCOUNTS, (["bad"],)),
    "nothing": cast("Any", None),
}


@either_database(pytest.mark.long)
@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
async def test_a_change_that_is_no_row_of_the_tables_parks_its_aggregate(
    log: MemoryLog, book: Book, store: Store, unfit: Change
) -> None:
    """The projector continues, and the other projection has the commit."""

    def changes(commit: Commit) -> Iterable[Change]:
        yield from [unfit] if commit.aggregate.id == "bad" else ledger.account_changes(commit)

    accounts, owners = ledger.PROJECTIONS
    model = attrs.evolve(MODEL, projections=(attrs.evolve(accounts, handlers={ledger.CATEGORY: changes}), owners))
    await book.append("good", Opened("gus"))
    await book.append("bad", Opened("eve"))
    await book.append("good", Booked(7))
    projector = await project(log, store, model)
    assert projector.position == 3
    assert [(one.place, one.sequence, one.waiting) for one in await store.parked()] == [
        (("accounts", "ledger.account.bad"), 2, 1)
    ]
    assert await balance(store, "good") == 7
    assert [row["owner"] for row in await store.fetch("SELECT owner FROM owners ORDER BY owner")] == ["eve", "gus"]
    projector = await project(log, store)
    assert (await projector.unpark()).parked == []
    await assert_equals_a_fold(log, store, MODEL)


def put(log: MemoryLog, commit: Commit) -> None:
    """Have another commit at the sequence of an account's second one."""
    log._commits[commit.sequence - 1] = log._by_subject[commit.subject][1] = commit


BODIES = [b"\xff", b"{}", b'{"id":"1","at":"2026-01-01T00:00:00Z","events":[],"state":{"d":{"owner":1}}}']


@either_database(pytest.mark.long)
@pytest.mark.parametrize("batch", [1, 10_000])
@pytest.mark.parametrize("body", BODIES)
async def test_a_commit_that_cannot_be_read_is_parked_with_its_keys(
    log: MemoryLog, book: Book, store: Store, body: bytes, batch: int
) -> None:
    """Its aggregate is parked for every projection. A key that may be in it does not count as unused. Unparking restores all."""
    await book.append("a", Opened("ann"), key="first")
    await book.append("a", Booked(3), key="second")
    await book.append("a", Booked(4), key="third")
    await book.append("b", Opened("bob"))
    whole = log._commits[1]
    put(log, Commit(2, "ledger.account.a", body, ledger.REGISTRY, whole.headers))
    projector = await project(log, store, batch=batch)
    parked = {one.projection: (one.sequence, one.waiting, one.last) for one in await store.parked()}
    assert parked == dict.fromkeys(("accounts", "owners", "command_keys"), (2, 2, 3))
    keys = CommandKeys(projector, store)
    third = KeyUse("third", None, "ledger.account.a", 3)
    assert await keys.find(["other"], "ledger.account.b", 0) == {}
    for use in (await keys.find(["second", "third"], "ledger.account.a", 0)).values():
        assert isinstance(use, Unavailable)
        assert "sequence 2 is not applied" in str(use)
    assert len((await projector.unpark()).parked) == 3
    put(log, whole)
    assert (await projector.unpark()).parked == []
    second = KeyUse("second", None, "ledger.account.a", 2)
    assert await keys.find(["second", "third"], "ledger.account.a", 0) == {"second": second, "third": third}
    assert await balance(store, "a") == 7


async def test_where_only_the_last_state_counts_the_one_before_the_poison_is_kept(
    log: MemoryLog, book: Book, store: Store
) -> None:
    """`latest`: within a batch the last commit of an aggregate says all, unless it is the one that cannot be applied."""

    def owner(commit: Commit) -> Iterable[Change]:
        if commit.state.frozen:
            raise LookupError("frozen")
        return ledger.owner_changes(commit)

    accounts, owners = ledger.PROJECTIONS
    latest = attrs.evolve(owners, latest=frozenset({ledger.CATEGORY}), handlers={ledger.CATEGORY: owner})
    model = attrs.evolve(MODEL, projections=(accounts, latest))
    await book.append("a", Opened("ann"))
    await book.append("a", Booked(1))
    await book.append("a", ledger.Frozen())
    await book.append("a", Booked(1))
    await book.append("b", Opened("bob"))
    projector = await project(log, store, model)
    (parked,) = await store.parked()
    assert (parked.projection, parked.sequence, parked.waiting) == ("owners", 3, 2)
    assert await store.fetch("SELECT * FROM owners ORDER BY owner") == [
        {"owner": "ann", "account": "a"},
        {"owner": "bob", "account": "b"},
    ]
    assert (await store.checkpoints())["owners"].applied == 3
    projector = await project(log, store)
    assert [one.place for one in (await projector.unpark()).freed] == [("owners", "ledger.account.a")]
    await assert_equals_a_fold(log, store, MODEL)


async def test_a_handler_that_fails_now_and_then_is_tried_again(log: MemoryLog, book: Book, store: Store) -> None:
    """Changes that it gave before it failed are not applied twice."""
    failed: set[int] = set()

    def sometimes(commit: Commit) -> Iterable[Change]:
        yield from ledger.account_changes(commit)
        if commit.sequence % 3 == 0 and commit.sequence not in failed:
            failed.add(commit.sequence)
            raise OSError("not now")

    accounts, owners = ledger.PROJECTIONS
    model = attrs.evolve(MODEL, projections=(attrs.evolve(accounts, handlers={ledger.CATEGORY: sometimes}), owners))
    await book.append_randomly(60, accounts=10, seed=3)
    await project(log, store, model)
    assert len(failed) == 20
    assert await store.parked() == []
    await assert_equals_a_fold(log, store, MODEL)


async def test_rows_that_refer_to_each_other_are_taken_up_in_an_order_that_works(
    log: MemoryLog, book: Book, store: Store
) -> None:
    """One name wanders from account to account; all of them are parked."""
    for account, owner in (("a", "ann"), ("b", "bob"), ("c", "cid")):
        await book.append(account, Opened(owner), POISON)
    await book.append("b", Opened("dora"))
    await book.append("a", Opened("bob"))
    await book.append("c", Opened("ann"))
    projector = await project(log, store)
    assert [one.subject[-1] for one in await store.parked()] == ["a", "b", "c"]
    projector = await project(log, store, FIXED)
    assert len((await projector.unpark()).freed) == 3
    rows = await store.fetch("SELECT id, owner FROM accounts ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [("a", "bob"), ("b", "dora"), ("c", "ann")]


async def test_the_many_of_one_kind_are_parked_in_one_go(log: MemoryLog, book: Book, store: Store) -> None:
    """A handler that cannot apply any commit: every aggregate is parked, no commit is lost, and all of them can be unparked."""

    def broken(_: Commit) -> Iterable[Change]:
        raise KeyError("owner")

    accounts, owners = ledger.PROJECTIONS
    model = attrs.evolve(MODEL, projections=(attrs.evolve(accounts, handlers={ledger.CATEGORY: broken}), owners))
    await book.append_randomly(400, accounts=40, seed=1)
    await project(log, store, model, batch=90)
    parked: list[Parked] = list(await store.parked())
    assert len(parked) == 40
    assert sum(one.waiting for one in parked) == 400
    assert (await store.checkpoints())["accounts"].applied == 0
    projector = await project(log, store, MODEL)
    assert len((await projector.unpark()).freed) == 40
    await assert_equals_a_fold(log, store, MODEL)


async def test_what_a_removed_projection_has_parked_stays_parked(log: MemoryLog, book: Book, store: Store) -> None:
    """The model has another projection instead. Aggregates that the others have parked are freed."""
    accounts, owners = ledger.PROJECTIONS

    def broken(_: Commit) -> Iterable[Change]:
        raise KeyError("owner")

    gone = attrs.evolve(owners, name="holders", handlers={ledger.CATEGORY: broken})
    await book.append("bad", Opened("eve"), POISON)
    await project(log, store, attrs.evolve(MODEL, projections=(accounts, gone)))
    projector = await project(log, store, FIXED)
    done = await projector.unpark()
    assert [one.projection for one in done.freed] == ["accounts"]
    assert [one.projection for one in done.parked] == ["holders"]
    assert list(await store.parked()) == done.parked
    assert [one.projection for one in (await projector.unpark("holders")).parked] == ["holders"]


@pytest.mark.parametrize("lost", [2, 4])
async def test_an_aggregate_with_a_waiting_commit_that_is_lost_stays_parked_there(
    log: MemoryLog, book: Book, store: Store, lost: int
) -> None:
    """The commits before it are applied, however often it is unparked. The reason names it, and others are freed."""
    await book.append("bad", Opened("eve"))
    await book.append("bad", POISON)
    for amount in (1, 2, 3):
        await book.append("bad", Booked(amount))
    await book.append("other", Opened("gus"), POISON)
    await project(log, store)
    whole = list(log._by_subject["ledger.account.bad"])
    del log._by_subject["ledger.account.bad"][lost - 1]
    log.damage(lost)
    projector = Projector(log, store, FIXED)
    await projector.load()
    for _ in range(2):
        done = await projector.unpark()
        assert [(one.subject, one.sequence, one.last) for one in done.parked] == [("ledger.account.bad", lost, 5)]
        assert f"sequence {lost} cannot be read" in done.parked[0].error
        assert await balance(store, "bad") == (0 if lost == 2 else 2)
        assert await balance(store, "other") == 1
    log._by_subject["ledger.account.bad"] = whole
    log._damaged.clear()
    assert (await projector.unpark()).parked == []
    await assert_equals_a_fold(log, store, FIXED)


@pytest.mark.parametrize("begun", [0, 2])
@pytest.mark.parametrize("batch", [1, 10_000])
async def test_a_commit_that_follows_a_lost_one_is_not_applied(
    log: MemoryLog, book: Book, store: Store, batch: int, begun: int
) -> None:
    """The log was cut and has grown again: the guard of a writer that knows the lost commit fits. Its aggregate is parked.

    Whether the commit before it was read a moment ago, or by an earlier projector.
    """
    await book.append("a", Opened("ann"))
    states, sequences, digests = dict(book.states), dict(book.sequences), dict(book.digests)
    lost = await book.append("a", Booked(5))
    late = attrs.evolve(book.proposal("a", Booked(1), key="late"), prev=lost.digest)
    await log.cut(1)
    book.states, book.sequences, book.digests = states, sequences, digests
    await book.append("a", Booked(7))
    if begun:
        await project(log, store, batch=batch)
    book.stored("a", await log.append(late))
    await book.append("a", Booked(2))
    opened = await book.append("b", Opened("bob"))
    await log.append(attrs.evolve(book.proposal("b", Booked(9)), expected=opened.sequence, prev=opened.digest))
    projector = await project(log, store, batch=batch)
    places = {(name, "ledger.account.a") for name in ("accounts", "owners", "command_keys")}
    assert {one.place: (one.sequence, one.waiting, one.last) for one in await store.parked()} == dict.fromkeys(places, (3, 2, 4))
    reasons = {one.error for one in projector.parked.values()}
    assert all("was decided on another commit than the one at sequence 2" in reason for reason in reasons)
    assert (await balance(store, "a"), await balance(store, "b")) == (7, 9)
    assert await find_uses(store, ["late"]) == {}
    assert len((await projector.unpark()).parked) == 3
    assert await balance(store, "a") == 7
    async with replayed_copy(log, MODEL, until=6) as fresh:
        assert await compare(store, fresh, MODEL) is None
        assert {one.place for one in await fresh.parked()} == places


@pytest.mark.parametrize("batch", [1, 3, 10_000])
async def test_a_message_that_was_published_past_the_log_is_not_applied(
    log: MemoryLog, book: Book, store: Store, batch: int
) -> None:
    """It parks its aggregate. Earlier commits are applied, and others continue. Unparking does not help.

    This is also true if only the last commit counts.
    """
    await book.append("a", Opened("ann"))
    await book.append("a", Booked(5), key="five")
    last = log._commits[-1]
    forged = last.data.replace(b'"balance":5', b'"balance":500').replace(b'"five"', b'"evil"')
    await log.publish(last.subject, forged)
    book.sequences["a"] = 3
    await book.append("a", Booked(1))
    await book.append("b", Opened("bob"), Booked(7))
    projector = await project(log, store, batch=batch)
    assert {one.place: (one.sequence, one.waiting, one.last) for one in await store.parked()} == {
        (name, last.subject): (3, 2, 4) for name in ("accounts", "owners", "command_keys")
    }
    assert all("without a guard, past the event log" in one.error for one in await store.parked())
    assert (await balance(store, "a"), await balance(store, "b")) == (5, 7)
    assert await find_uses(store, ["evil"]) == {}
    assert len((await projector.unpark()).parked) == 3
    assert await balance(store, "a") == 5
