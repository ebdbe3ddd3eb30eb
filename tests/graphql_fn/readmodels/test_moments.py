"""A result shows one moment of the tables, names it, and can wait for one. SQL ends with the request that needs it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio
from graphql import build_schema

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.commit import Proposal
from eventlog.testing.memory import MemoryLog
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome
from graphql_fn.http.gateway import Gateway
from graphql_fn.http.routes import TABLE, pages
from graphql_fn.readmodels.asking import Asking
from graphql_fn.readmodels.pantry import function as pantry
from graphql_fn.settings import Settings
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.monitoring import Health
from httpkit.server.guard import Guard
from pantry.domain import product
from pantry.domain.ledger import PRODUCT
from pantry.domain.product import Details, MovementRecorded, MovementType, ProductCreated
from pantry.domain.registry import REGISTRY
from pantry.readmodel import MODEL
from pantry.readmodel.graph import PantryGraph
from projections.errors import StoreUnavailable
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.rebuild import confirm, fill, switch
from projections.store import CopyPart, Parked
from projections.stores.databases import copies_at, store_at
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore, files
from servicekit import server
from servicekit.parts import ProcessParts
from servicekit.replica import ReadReplica
from tests.support.pace import within
from tests.support.pantry.stocked import EPOCH, code_of
from tests.support.readside.tables import change, execute
from tests.support.waiting import wait_until

PRODUCTS = 5
STOCKED = """query {
    one: product(ean13: "%s") { quantity movements(first: 1) { nodes { quantityAfter product { quantity } } } }
    products { nodes { ean13 quantity movements(first: 1) { nodes { quantityAfter } } } }
    movements(first: 1) { nodes { ean13 quantityAfter } }
}"""


@attrs.define
class Ledger:
    """Products whose stock changes all the time. `stocks` has the stock of each after each sequence that changed it."""

    log: MemoryLog
    store: SQLiteStore | PostgresStore
    projector: Projector
    replica: ReadReplica
    evaluator: Evaluator
    stocks: dict[str, list[tuple[int, int]]]

    async def book(self, code: str, quantity: int) -> int:
        """Book a number of units in; gives the sequence."""
        before = await self.log.last(AggregateId(product.CATEGORY, code))
        assert before is not None
        _, stock = self.stocks[code][-1]
        event = MovementRecorded(
            id=f"m-{code[-4:]}-{len(self.stocks[code])}",
            type=MovementType.IN,
            quantity=quantity * 1000,
            stock=(stock + quantity) * 1000,
            reason="",
            notes="",
            created_by="",
            at=EPOCH + timedelta(seconds=before.sequence + 1),
            unit="kg",
        )
        commit = NewCommit(id=event.id, at=EPOCH, events=(NewEvent(event),), state=PRODUCT.fold([event], before.state))
        aggregate = AggregateId(product.CATEGORY, code)
        proposal = Proposal(aggregate=aggregate, expected=before.sequence, commit=commit, prev=before.digest)
        sequence = (await self.log.append(proposal)).sequence
        self.stocks[code].append((sequence, stock + quantity))
        return sequence

    def stock(self, code: str, sequence: int) -> int:
        """The fold of the events of a product up to a sequence."""
        return next((stock for at, stock in reversed(self.stocks[code]) if at <= sequence), 0)

    async def ask(self, query: str, **more: Any) -> Any:
        """The whole result."""
        return (await self.evaluator.evaluate(GraphQLRequest(query, **more))).document


@asynccontextmanager
async def ledger(url: str) -> AsyncIterator[Ledger]:
    """A ledger whose tables are in this database, and follow its log."""
    log = MemoryLog(REGISTRY)
    async with store_at(url) as store:
        await Migrations(store, MODEL).up()
        projector = Projector(log, store, MODEL)
        following = asyncio.create_task(projector.run())
        replica = pantry.replica(url, None, max_lag=30)
        async with ProcessParts(*replica.parts).running():
            made = Ledger(log, store, projector, replica, Evaluator(pantry.function(replica), QueryLimits(seconds=30)), {})
            for number in range(PRODUCTS):
                code = code_of(number)
                details = Details(name=f"product {number}", description="", unit="kg", min_stock=0, category_id=None)
                event = ProductCreated(ean13=code, details=details, at=EPOCH)
                commit = NewCommit(id=code, at=EPOCH, events=(NewEvent(event),), state=PRODUCT.fold([event], None))
                found = await log.append(Proposal(aggregate=AggregateId(product.CATEGORY, code), expected=0, commit=commit))
                made.stocks[code] = [(found.sequence, 0)]
            await projector.wait_for((await log.head()).last, 30)
            try:
                yield made
            finally:
                following.cancel()
                await asyncio.wait({following})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'pantry.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest_asyncio.fixture
async def running(url: str) -> AsyncIterator[Ledger]:
    """A ledger in it."""
    async with ledger(url) as made:
        yield made


def contradictions(found: Any, running: Ledger, code: str) -> list[str]:
    """How a result of STOCKED contradicts itself, or the fold of the log at its sequence."""
    data, sequence = found["data"], found["extensions"]["sequence"]
    stocks = {one: str(running.stock(one, sequence)) for one in running.stocks}
    claims = [("one", code, data["one"]["quantity"])]
    for node in data["one"]["movements"]["nodes"]:
        claims += [("its movement", code, node["quantityAfter"]), ("its movement's product", code, node["product"]["quantity"])]
    for node in data["products"]["nodes"]:
        claims.append(("list", node["ean13"], node["quantity"]))
        claims += [("list, movement", node["ean13"], one["quantityAfter"]) for one in node["movements"]["nodes"]]
    claims += [("newest movement", node["ean13"], node["quantityAfter"]) for node in data["movements"]["nodes"]]
    return [
        f"{what} of {of}: {stock}, at {sequence} it is {stocks[of]}" for what, of, stock in claims if stock != str(stocks[of])
    ]


async def test_under_writes_a_result_is_the_fold_of_the_log_at_its_sequence(running: Ledger) -> None:
    asked: set[int] = set()
    choice = random.Random(21)

    async def write() -> None:
        while len(asked) < 10:
            sequence = await running.book(choice.choice(list(running.stocks)), 1)
            await running.projector.wait_for(sequence, 30)

    async def ask(number: int) -> None:
        code = code_of(number)
        while not writing.done():
            found = await running.ask(STOCKED % code)
            assert contradictions(found, running, code) == []
            asked.add(found["extensions"]["sequence"])

    writing = asyncio.create_task(write())
    async with asyncio.timeout(60):
        await asyncio.gather(writing, *(ask(number) for number in range(2)))


async def test_a_result_waits_for_the_sequence_that_is_asked_for(running: Ledger) -> None:
    code = code_of(1)
    query = f'{{ product(ean13: "{code}") {{ quantity }} }}'
    for number in range(1, 6):
        sequence = await running.book(code, 1)
        found = await running.ask(query, min_sequence=sequence)
        assert found == {"data": {"product": {"quantity": str(number)}}, "extensions": {"sequence": sequence}}
    # Its first query is prepared within this time, also on a busy machine: otherwise the result is that the time is over.
    hasty = Evaluator(running.evaluator.function, QueryLimits(seconds=2))
    late = await hasty.evaluate(GraphQLRequest(query, min_sequence=10_000))
    assert (late.outcome, "data" in late.document) == (QueryOutcome.BEHIND, False)
    assert "10000 was asked for" in late.document["errors"][0]["message"]


async def test_a_wait_for_a_sequence_ends_in_time_if_the_tables_do_not_answer(
    running: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reached() -> int:
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(running.replica.tables, "reached", reached)
    hasty = Evaluator(running.evaluator.function, QueryLimits(seconds=2))
    async with asyncio.timeout(60):
        late = await hasty.evaluate(GraphQLRequest("{ products(first: 1) { nodes { name } } }", min_sequence=1))
    assert (late.outcome, "data" in late.document) == (QueryOutcome.BEHIND, False)


@pytest.mark.real
async def test_a_result_without_the_commit_that_is_asked_for_is_refused(running: Ledger) -> None:
    """The tables are past the commit, and leave it out: its aggregate is parked."""
    query = f'{{ product(ean13: "{code_of(1)}") {{ quantity }} }}'
    sequence = (await running.log.head()).last
    parked = Parked(
        projection=MODEL.projections[0].name,
        subject=f"{product.CATEGORY}.{code_of(1)}",
        sequence=sequence,
        types="",
        error="cannot be applied",
        traceback="",
        at=EPOCH,
        waiting=1,
        last=sequence,
    )
    await running.store.advance((), parked={parked.place: parked})
    refused = await running.evaluator.evaluate(GraphQLRequest(query, min_sequence=sequence))
    assert (refused.outcome, "data" in refused.document) == (QueryOutcome.PARKED, False)
    assert refused.document["errors"][0]["extensions"]["code"] == "PARKED"
    assert (await running.ask(query, min_sequence=sequence - 1))["data"] == {"product": {"quantity": "0"}}
    async with server.listening(Settings(port=0), _served(running.evaluator)) as address, aiohttp.ClientSession() as http:
        place = f"http://127.0.0.1:{address.port}/function/pantry"
        async with http.post(place, data=query, headers={"Min-Seq": str(sequence)}) as answer:
            assert answer.status == 503
            assert "is parked by projection" in await answer.text()


async def test_tables_that_take_the_place_of_others_are_read_without_an_event(tmp_path: Path) -> None:
    """A rebuild, and a file that is set aside: a wrong row is not answered for longer than a moment, nor are lost tables."""
    path, code = tmp_path / "pantry.db", code_of(1)
    url = f"sqlite:{path}"
    query = f'{{ product(ean13: "{code}") {{ name }} }}'
    async with ledger(url) as running:
        await change(url, f"UPDATE products SET name = 'wrong' WHERE ean13 = '{code}'")
        assert (await running.ask(query))["data"] == {"product": {"name": "wrong"}}
        copies = copies_at(url)
        async with copies.store(CopyPart.NEW) as copy:
            await fill(copy, running.log, MODEL)
            await confirm(copy, running.log, MODEL)
        await switch(running.projector, running.store, copies, running.log, MODEL)

        async def shows(**expected: Any) -> bool:
            found = await running.ask(query)
            return {name: found.get(name) for name in expected} == expected

        await wait_until(lambda: shows(data={"product": {"name": "product 1"}}), timeout=10)
        files.file_of(path, 1).rename(tmp_path / "aside.db")
        await wait_until(lambda: shows(data={"product": None}), timeout=10)
        assert (await running.ask(query))["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
        with pytest.raises(StoreUnavailable):
            await running.replica.tables.check()


async def test_a_gateway_whose_tables_a_newer_program_has_changed_is_not_ready(url: str) -> None:
    """Also if it read them before, and they stay in their place."""
    async with ledger(url) as running:
        await running.replica.tables.check()
        await execute(url, "ALTER TABLE products RENAME COLUMN name TO title")
        with pytest.raises(
            StoreUnavailable,
            match=r"the tables belong to another version of the program: table 'products' .*: run the program that made it",
        ):
            await running.replica.tables.check()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) AS c FROM n"


def heavy(replica: ReadReplica, started: asyncio.Event, ended: asyncio.Event) -> Function:
    """A function with a field whose statement takes minutes, and one whose statement takes no time."""
    schema = build_schema("type Query { endless: Int quick: Int }")

    async def endless(_: Any, info: Any) -> int:
        database = await info.context.database()
        started.set()
        try:
            return int((await database.fetch_in_thread(ENDLESS))[0]["c"])
        finally:
            ended.set()

    async def quick(_: Any, info: Any) -> int:
        return int((await (await info.context.database()).fetch_in_thread("SELECT 1 AS one"))[0]["one"])

    assert schema.query_type is not None
    schema.query_type.fields["endless"].resolve = endless
    schema.query_type.fields["quick"].resolve = quick
    return Function(name="heavy", schema=schema, context=lambda request: Asking(replica, PantryGraph, request))


async def test_statements_end_at_the_deadline_and_no_other_query_waits_for_them(running: Ledger) -> None:
    function = heavy(running.replica, asyncio.Event(), asyncio.Event())
    evaluator, patient = Evaluator(function, QueryLimits(seconds=1)), Evaluator(function, QueryLimits(seconds=30))
    with within(20):
        for _ in range(2):
            endless = [asyncio.create_task(evaluator.evaluate(GraphQLRequest("{ endless }"))) for _ in range(6)]
            quick = await patient.evaluate(GraphQLRequest("{ quick }"))
            assert quick.document["data"] == {"quick": 1}
            assert not all(task.done() for task in endless)
            assert {(await task).outcome for task in endless} == {QueryOutcome.OUT_OF_TIME}


@asynccontextmanager
async def _served(evaluator: Evaluator) -> AsyncIterator[server.Application]:
    edge = Edge(title="test", version="0")
    page = pages()
    services = Gateway([evaluator], edge.metrics.registry, check_origin=Guard().check_origin, page=page.by_path["/"])
    yield build_application(TABLE, services, edge, health=Health({})), edge


@pytest.mark.real
async def test_a_statement_ends_when_the_client_leaves(running: Ledger) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    evaluator = Evaluator(heavy(running.replica, started, ended), QueryLimits(seconds=600))
    settings = Settings(port=0)
    async with server.listening(settings, _served(evaluator)) as address, aiohttp.ClientSession() as http:
        place = f"http://127.0.0.1:{address.port}/function/heavy"
        asking = asyncio.create_task(http.post(place, data="{ endless }"))
        with within(20):
            await started.wait()
            asking.cancel()
            await ended.wait()
        async with http.post(place, data="{ quick }") as answer:
            assert (await answer.json())["data"] == {"quick": 1}
        for given, status in (({"Min-Seq": "999999"}, 503), ({"Min-Seq": "x"}, 400)):
            hasty = attrs.evolve(evaluator.limits, seconds=1)
            evaluator.limits = hasty
            async with http.post(place, data="{ quick }", headers=given) as answer:
                assert answer.status == status
                assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)
        body = {"query": "{ quick }", "extensions": {"minSeq": 999_999}}
        async with http.post(place, json=body) as answer:
            assert answer.status == 503
        async with http.get(place, params={"query": "{ quick }", "min_seq": "1"}) as answer:
            assert (answer.status, (await answer.json())["data"]) == (200, {"quick": 1})
