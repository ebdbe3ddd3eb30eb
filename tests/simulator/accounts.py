"""The aggregate and the read model of the simulator: accounts that never go below zero, and transfers between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from eventlog import Commit, Decider, Registry
from projections.model import Change, Column, Projection, Put, ReadModel, Table

STREAM = "BANK"
CATEGORY = "bank.account"
REGISTRY = Registry()


class Insufficient(Exception):
    """The account would go below zero."""


@REGISTRY.event("Moved")
@attrs.frozen(kw_only=True)
class Moved:
    """Money came in, or went out where `amount` is negative."""

    amount: int


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Account:
    """The balance, and the number of movements that made it."""

    balance: int = 0
    movements: int = 0


@attrs.frozen(kw_only=True)
class Move:
    """Book an amount."""

    amount: int


def decide(command: Move, state: Account | None) -> Sequence[Moved]:
    """Refuse to go below zero. Raises Insufficient."""
    if (state.balance if state else 0) + command.amount < 0:
        raise Insufficient(f"cannot book {command.amount}")
    return (Moved(amount=command.amount),)


def evolve(state: Account | None, event: Moved) -> Account:
    """Add the amount."""
    before = state or Account()
    return Account(balance=before.balance + event.amount, movements=before.movements + 1)


ACCOUNT: Decider[Account, Move, Moved] = Decider(CATEGORY, decide, evolve, initial=None)

BALANCES = Table(
    "balances",
    (Column("id"), Column("balance", "integer"), Column("movements", "integer"), Column("sequence", "integer")),
    key=("id",),
)
ENTRIES = Table(
    "entries",
    (Column("account"), Column("number", "integer"), Column("amount", "integer"), Column("sequence", "integer")),
    key=("account", "number"),
)


def balance_changes(commit: Commit) -> Iterable[Change]:
    """The row of the account, by the state in the commit."""
    state: Account = commit.state
    yield Put(BALANCES, (commit.aggregate.id, state.balance, state.movements, commit.sequence))


def entry_changes(commit: Commit) -> Iterable[Change]:
    """A row for each movement, by the events in the commit."""
    state: Account = commit.state
    first = state.movements - len(commit.events) + 1
    for number, event in enumerate(commit.events, start=first):
        yield Put(ENTRIES, (commit.aggregate.id, number, event.data.amount, commit.sequence))


MODEL = ReadModel(
    name="bank",
    stream=STREAM,
    registry=REGISTRY,
    projections=(
        Projection("balances", 1, (BALANCES,), {CATEGORY: balance_changes}),
        Projection("entries", 1, (ENTRIES,), {CATEGORY: entry_changes}),
    ),
    folds={CATEGORY: ACCOUNT.fold},
)
