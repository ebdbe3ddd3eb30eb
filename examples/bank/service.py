"""A bank: accounts with deposits, transfers between two of them, a table of balances, and a page that follows them."""

import sys
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from pathlib import Path

import attrs

from eventlog import CommandStep, Commit, Decider, Registry
from httpkit import Answer, Call, Frame, Nothing, Pages, Route, encode, member, message, path
from projections import Column, Projection, Put, ReadModel, Table
from servicekit import EventChange, Running, Service, answer

EVENTS = Registry()


@EVENTS.event("MoneyMoved")
@attrs.frozen
class MoneyMoved:
    cents: int


@EVENTS.state("bank.account")
@attrs.frozen
class Account:
    cents: int = 0


class Refused(Exception):
    status = HTTPStatus.CONFLICT


def decide(move: MoneyMoved, account: Account) -> Sequence[MoneyMoved]:
    if account.cents + move.cents < 0:
        raise Refused(f"the balance is {account.cents} cents, {-move.cents} were asked for")
    return [move]


def evolve(account: Account, event: MoneyMoved) -> Account:
    return Account(account.cents + event.cents)


ACCOUNT = Decider("bank.account", decide, evolve, initial=Account())
BALANCES = Table("balances", (Column("id"), Column("cents", "integer")), key=("id",))


def rows(commit: Commit) -> Iterable[Put]:
    return [Put(BALANCES, (commit.aggregate.id, commit.state.cents))]


MODEL = ReadModel("bank", "BANK", EVENTS, (Projection("balances", 1, (BALANCES,), {ACCOUNT.category: rows}),))


@message
class Balance:
    id: str = member()
    cents: int = member()


@message
class Deposit:
    id: str = path(pattern="^[a-z0-9]{1,20}$", form="1 to 20 letters and digits")
    cents: int = member(ge=1, le=10**12)


@message
class Transfer(Deposit):
    to: str = member(pattern="^[a-z0-9]{1,20}$", form="1 to 20 letters and digits")


async def list_accounts(_: Nothing, call: Call[Running]) -> Sequence[Balance]:
    return [Balance(**row) for row in await call.services.fetch("SELECT id, cents FROM balances ORDER BY id")]


async def deposit(request: Deposit, call: Call[Running]) -> Answer[Balance]:
    outcome = await call.services.execute(ACCOUNT, request.id, MoneyMoved(request.cents), call)
    return answer(outcome, Balance(id=request.id, cents=outcome.state.cents))


async def transfer(request: Transfer, call: Call[Running]) -> Answer[Balance]:
    if request.to == request.id:
        raise Refused("an account cannot pay itself")
    moves = ((request.id, -request.cents), (request.to, request.cents))
    steps = [CommandStep(ACCOUNT, id_, MoneyMoved(cents)) for id_, cents in moves]
    source, _ = await call.services.execute_together(steps, call)
    return answer(source, Balance(id=request.id, cents=source.state.cents))


def show(change: EventChange) -> Iterable[Frame]:
    yield Frame(change.event.position, "balance", encode(Balance(id=change.aggregate.id, cents=change.after.cents)))


BANK = Service(
    model=MODEL,
    deciders=[ACCOUNT],
    routes=[
        Route("GET", "/api/accounts", list_accounts, summary="List accounts"),
        Route("POST", "/api/accounts/{id}/deposits", deposit, summary="Deposit money", idempotent=True),
        Route("POST", "/api/accounts/{id}/transfers", transfer, summary="Pay another account", idempotent=True, errors=(409,)),
    ],
    show=show,
    events={"balance": Balance},
    pages=Pages(Path(__file__).parent, "page"),
    summary="Accounts with deposits and transfers.",
)

if __name__ == "__main__":
    sys.exit(BANK.main())
