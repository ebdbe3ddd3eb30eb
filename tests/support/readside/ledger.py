"""A small service for tests of the read side: accounts that are opened, booked on, frozen and closed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import attrs

from eventlog import AggregateId, Commit, Context, Decider, EventLog, NewCommit, NewEvent, Registry
from eventlog.commit import Appended, Proposal
from projections.model import Change, Column, Delete, Projection, Put, ReadModel, Table

CATEGORY = "ledger.account"
REGISTRY = Registry()
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@REGISTRY.event("Opened")
@attrs.frozen
class Opened:
    owner: str


@REGISTRY.event("Booked")
@attrs.frozen
class Booked:
    amount: int
    memo: str | None = None


@REGISTRY.event("Frozen")
@attrs.frozen
class Frozen:
    pass


@REGISTRY.event("Closed")
@attrs.frozen
class Closed:
    pass


Event = Opened | Booked | Frozen | Closed


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Account:
    owner: str
    balance: int = 0
    entries: int = 0
    frozen: bool = False
    closed: bool = False
    opened_at: datetime = EPOCH


def decide(command: Event, state: Account | None) -> Sequence[Event]:
    return (command,)


def evolve(state: Account | None, event: Event) -> Account:
    if isinstance(event, Opened):
        return Account(owner=event.owner)
    assert state is not None
    match event:
        case Booked(amount=amount):
            return attrs.evolve(state, balance=state.balance + amount, entries=state.entries + 1)
        case Frozen():
            return attrs.evolve(state, frozen=True)
        case Closed():
            return attrs.evolve(state, closed=True)


ACCOUNT: Decider[Account, Event, Event] = Decider(CATEGORY, decide, evolve, initial=None)

ACCOUNTS = Table(
    "accounts",
    (
        Column("id"),
        Column("owner"),
        Column("balance", "integer"),
        Column("frozen", "boolean"),
        Column("opened_at", "timestamp"),
        Column("tags", "json"),
    ),
    key=("id",),
)
ENTRIES = Table(
    "entries",
    (
        Column("account"),
        Column("number", "integer"),
        Column("amount", "integer"),
        Column("memo"),
        Column("at", "timestamp"),
        Column("rate", "real"),
    ),
    key=("account", "number"),
)
OWNERS = Table("owners", (Column("owner"), Column("account")), key=("owner",))


def account_changes(commit: Commit, poison: str | None = "poison") -> Iterable[Change]:
    state: Account = commit.state
    id_ = commit.aggregate.id
    if state.closed:
        yield from (Delete(ENTRIES, (id_, number)) for number in range(1, state.entries + 1))
        yield Delete(ACCOUNTS, (id_,))
        return
    yield Put(ACCOUNTS, (id_, state.owner, state.balance, state.frozen, state.opened_at, '{"kind":"current"}'))
    booked = [event.data for event in commit.events if isinstance(event.data, Booked)]
    for number, entry in enumerate(booked, start=state.entries - len(booked) + 1):
        if entry.memo == poison is not None:
            raise RuntimeError("this entry cannot be applied")
        yield Put(ENTRIES, (id_, number, entry.amount, entry.memo, commit.at, entry.amount / 3))


def owner_changes(commit: Commit) -> Iterable[Change]:
    state: Account = commit.state
    if state.closed:
        return (Delete(OWNERS, (state.owner,)),)
    return (Put(OWNERS, (state.owner, commit.aggregate.id)),)


PROJECTIONS = (
    Projection("accounts", 1, (ACCOUNTS, ENTRIES), {CATEGORY: account_changes}),
    Projection("owners", 1, (OWNERS,), {CATEGORY: owner_changes}),
)
MODEL = ReadModel(
    name="ledger",
    stream="LEDGER",
    registry=REGISTRY,
    projections=PROJECTIONS,
    migrations="tests.support.readside.ledger_migrations",
    folds={CATEGORY: ACCOUNT.fold},
)
PLACE = f"{__name__}:MODEL"
FIXED = attrs.evolve(
    MODEL,
    projections=(
        attrs.evolve(PROJECTIONS[0], handlers={CATEGORY: partial(account_changes, poison=None)}),
        *PROJECTIONS[1:],
    ),
)
"""The same without the defect: every entry can be applied."""


class Book:
    """Writes accounts to a log, and knows their states and last sequences."""

    def __init__(self, log: EventLog | None = None) -> None:
        self.log = log
        self.states: dict[str, Account] = {}
        self.sequences: dict[str, int] = {}
        self.digests: dict[str, str | None] = {}
        self.time = EPOCH

    def proposal(self, account: str, *events: Event, key: str | None = None, fingerprint: str | None = None) -> Proposal:
        """Return the proposal that writes these events to the account as it is known. Its events count as written."""
        state = ACCOUNT.fold(events, self.states.get(account))
        assert state is not None
        self.states[account] = state
        self.time += timedelta(milliseconds=1)
        context = Context(key=key, fingerprint=fingerprint)
        commit = NewCommit(id=uuid4().hex, at=self.time, events=tuple(NewEvent(event, context) for event in events), state=state)
        expected = self.sequences.get(account, 0)
        prev = self.digests.get(account) if expected else None
        return Proposal(aggregate=AggregateId(CATEGORY, account), expected=expected, commit=commit, prev=prev)

    def stored(self, account: str, appended: Appended) -> None:
        """Note the place of the last commit of an account."""
        self.sequences[account], self.digests[account] = appended.sequence, appended.digest

    async def append(self, account: str, *events: Event, key: str | None = None, fingerprint: str | None = None) -> Appended:
        """Write events to an account."""
        assert self.log is not None
        appended = await self.log.append(self.proposal(account, *events, key=key, fingerprint=fingerprint))
        self.stored(account, appended)
        return appended

    async def append_together(self, *entries: tuple[str, Sequence[Event]]) -> None:
        """Write events to several accounts in one batch."""
        assert self.log is not None
        appended = await self.log.append_together([self.proposal(account, *events) for account, events in entries])
        for (account, _), stored in zip(entries, appended, strict=True):
            self.stored(account, stored)

    async def append_randomly(self, commits: int, *, accounts: int, seed: int, batch: int = 100) -> None:
        """Write that many commits to accounts at random: most of them bookings, now and then one is closed and opened again."""
        chance = random.Random(seed)
        names = [f"account-{number}" for number in range(accounts)]
        while commits:
            chosen = chance.sample(names, min(batch, commits, accounts))
            await self.append_together(*((name, self._next(name, chance)) for name in chosen))
            commits -= len(chosen)

    def _next(self, name: str, chance: random.Random) -> Sequence[Event]:
        state = self.states.get(name)
        if state is None or state.closed:
            return (Opened(f"owner of {name}"), Booked(chance.randrange(1, 100)))
        if chance.random() < 0.05:
            return (Closed(),)
        if chance.random() < 0.05:
            return (Frozen(),)
        return tuple(
            Booked(chance.randrange(1, 100), chance.choice((None, "rent", "bread"))) for _ in range(chance.randrange(1, 4))
        )
