"""Long work on a request leaves turns of the event loop for others: queries are prepared, resolved and introspected in pieces."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from graphql import (
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    build_schema,
    execute,
    get_introspection_query,
    parse,
)
from structlog.testing import capture_logs

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.preparation import FEW
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import OperationResult, QueryOutcome
from graphql_fn.core.running import turns
from graphql_fn.readmodels.pantry.function import SCHEMA as PANTRY

LIMITS = QueryLimits(seconds=60)
UNKNOWN = "{ products { nodes { " + " ".join(f"x{number}" for number in range(1900)) + " } } }"


def pantry() -> Evaluator:
    """A function with a large schema. Its fields fail: it has no tables."""
    return Evaluator(Function(name="pantry", schema=PANTRY), LIMITS)


@asynccontextmanager
async def others() -> AsyncIterator[list[int]]:
    """Count the turns that others have in the time of the block, in a list of one number."""
    counted = [0]

    async def count() -> None:
        while True:
            await asyncio.sleep(0)
            counted[0] += 1

    task = asyncio.create_task(count())
    try:
        yield counted
    finally:
        task.cancel()


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Errors of fields are not printed: that takes longer than the work."""
    with capture_logs():
        yield


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece is over as soon as it begins: the number of turns does not depend on the speed of the machine."""
    monkeypatch.setattr(turns, "PIECE", -1.0)


# Texts and variables


@pytest.mark.parametrize("values", [1, FEW])
async def test_others_have_turns_while_a_long_text_or_many_values_are_judged(values: int) -> None:
    """The judge of a word waits for a turn of the event loop: with a new text, and with many values of a known text."""
    judging, turn = threading.Event(), threading.Event()
    schema = build_schema("scalar Word type Query { same(of: [Word]): String }")
    word = schema.type_map["Word"]
    assert isinstance(word, GraphQLScalarType)

    def judge(value: Any) -> Any:
        if not judging.is_set():
            judging.set()
            assert turn.wait(20), "the event loop has no turn while a value is judged"
        return value

    methods: Any = word
    methods.coerce_input_value = judge
    methods.coerce_input_literal = lambda literal: judge(literal.value)
    evaluator = Evaluator(Function(name="words", schema=schema), LIMITS)
    new, known = '{ same(of: ["a"]) }', "query($w: [Word]) { same(of: $w) }"
    await evaluator.evaluate(GraphQLRequest(known, {"w": []}))
    request = GraphQLRequest(new) if values == 1 else GraphQLRequest(known, {"w": ["a"] * values})
    asked = asyncio.create_task(evaluator.evaluate(request))
    assert await asyncio.to_thread(judging.wait, 30)
    turn.set()
    assert (await asked).document == {"data": {"same": None}}


async def test_the_time_of_a_request_ends_its_preparation_too() -> None:
    evaluator = Evaluator(Function(name="pantry", schema=PANTRY), QueryLimits(seconds=0.001))
    result = await evaluator.evaluate(GraphQLRequest(UNKNOWN))
    assert (result.outcome, "data" in result.document) == (QueryOutcome.OUT_OF_TIME, False)


@pytest.mark.parametrize("fails", [False, True])
async def test_variables_are_read_once(*, fails: bool, engine_runs: list[object]) -> None:
    """By a plan, and by the engine as well."""
    read: list[Any] = []
    schema = build_schema("scalar Word type Query { same(of: Word): Word  fails: Word }")
    word, query = schema.type_map["Word"], schema.query_type
    assert isinstance(word, GraphQLScalarType)
    assert query is not None

    def coerce(value: Any) -> Any:
        read.append(value)
        return value

    methods: Any = word
    methods.coerce_input_value = coerce
    query.fields["same"].resolve = lambda _, _info, of=None: of
    query.fields["fails"].resolve = lambda *_: ValueError("no word")
    evaluator = Evaluator(Function(name="words", schema=schema))
    more = "fails" if fails else ""
    result = await evaluator.evaluate(GraphQLRequest(f"query($w: Word) {{ same(of: $w) {more} }}", {"w": "a"}))
    assert result.document["data"] == {"same": "a"} | ({"fails": None} if fails else {})
    assert (read, len(engine_runs)) == (["a"], int(fails))


# The schema


_TYPE = 'query($n: String!, $all: Boolean = true) { a: __type(name: $n) { ...T } __type(name: "Query") { ...T } __typename }'
_PARTS = "fragment T on __Type { kind name fields(includeDeprecated: $all) { name type { name ofType { name } } } }"


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (get_introspection_query(input_value_deprecation=True, specified_by_url=True), {}),
        (f"{_TYPE} {_PARTS}", {"n": "Product"}),
        (f"{_TYPE} {_PARTS}", {"n": "Nothing", "all": False}),
    ],
)
async def test_the_schema_is_told_by_a_plan_as_the_engine_tells_it(
    query: str, variables: dict[str, Any], engine_runs: list[object]
) -> None:
    evaluator = Evaluator(Function(name="pantry", schema=PANTRY), QueryLimits(seconds=60, cost=100_000))
    result = await evaluator.evaluate(GraphQLRequest(query, variables))
    expected = execute(PANTRY, parse(query), variable_values=variables)
    assert str(result.document) == str({"data": expected.data})  # type: ignore[union-attr]
    assert engine_runs == []


async def test_others_have_turns_while_the_schema_is_told(short_pieces: None) -> None:
    evaluator, query = pantry(), get_introspection_query()
    await evaluator.evaluate(GraphQLRequest(query))
    async with others() as counted:
        assert not (await evaluator.evaluate(GraphQLRequest(query))).failed
    assert counted[0] >= 100


async def test_others_have_turns_while_the_engine_tells_the_schema(short_pieces: None, engine_runs: list[object]) -> None:
    """A field that fails leaves the query to the engine."""
    evaluator = pantry()
    types = "types { kind name fields { name args { name type { name ofType { name } } } type { name ofType { name } } } }"
    query = f"{{ __schema {{ {types} }} products {{ totalCount }} }}"
    await evaluator.evaluate(GraphQLRequest(query))
    async with others() as counted:
        result = await evaluator.evaluate(GraphQLRequest(query))
    assert [error["path"] for error in result.document["errors"]] == [["products"]]
    assert len(engine_runs) == 2
    assert counted[0] >= 100


# Many requests at a time


def listed(items: int, resolve: Any) -> GraphQLSchema:
    """A schema with a list of objects whose field has this resolver."""
    schema = build_schema("type Query { items: [Item!]! fails: Int } type Item { value: Int }")
    item, query = schema.type_map["Item"], schema.query_type
    assert isinstance(item, GraphQLObjectType)
    assert query is not None
    query.fields["items"].resolve = lambda *_: list(range(items))
    query.fields["fails"].resolve = lambda *_: ValueError("no number")
    item.fields["value"].resolve = resolve
    return schema


@pytest.mark.parametrize("query", ["{ items { value } }", "{ fails items { value } }"])
async def test_a_turn_has_one_piece_of_work_however_many_requests_have_some(query: str) -> None:
    """By plans, and by the engine, which takes a field that fails."""
    resolved = 0

    def busy(source: int, _info: Any) -> int:
        nonlocal resolved
        resolved += 1
        until = time.thread_time() + turns.PIECE
        while time.thread_time() < until:
            pass
        return source

    evaluator = Evaluator(Function(name="many", schema=listed(30, busy)), LIMITS)
    request = GraphQLRequest(query, request_id="r")
    first = await evaluator.evaluate(request)
    assert first.document["data"]["items"][29] == {"value": 29}
    resolved = 0
    asked = [asyncio.create_task(evaluator.evaluate(request)) for _ in range(8)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert resolved  # they have begun
    most = 0
    while not all(task.done() for task in asked):
        before = resolved
        await asyncio.sleep(0)
        most = max(most, resolved - before)
    results: list[OperationResult] = [task.result() for task in asked]
    assert all(result.document == first.document for result in results)
    assert 1 <= most <= 2


async def test_a_request_that_is_given_up_leaves_its_turn_to_the_next() -> None:
    waiting = [asyncio.create_task(turns.Turns(time.monotonic() + 60).rest()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[1].cancel()
    await asyncio.wait_for(waiting[2], timeout=30)
    assert all(task.cancelled() for task in waiting[:2])
    await asyncio.wait_for(turns.Turns(time.monotonic() + 60).rest(), timeout=30)
