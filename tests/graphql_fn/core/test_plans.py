"""Plans of nested queries: the same results as graphql-core's own executor, with turns for others, within the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import attrs
from graphql import ExecutionResult, GraphQLObjectType, GraphQLSchema, build_schema, execute, parse, validate
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from graphql_fn.core.context import RequestContext
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome
from graphql_fn.core.running.planning import SourceResolver

SDL = """
enum Colour { RED BLUE }
interface Named { text: String }
type Query implements Named {
  text: String  number: Int!  ratio: Float  colour: Colour  none: String  yes: Boolean!  id: ID
  never: String!  wrong: Int  boom: String  lateBoom: String  exception: String
  late: String  future: Int  place: String  double(of: Int = 4): Int  needs(of: Int!): Int
  inner: Query  sure: Query!  lateInner: Query!  nothing: Query  named: Named
  list: [Query!]  holes: [Query]  lateList: [Query!]!  stream: [Query!]  numbers: [Int!]!  grid: [[Int]]  promises: [Int]
  brokenList: [Query!]  set: [Int]  lessInner: Query
}
"""


@attrs.frozen
class Thing:
    """An object that is named after its way from the root."""

    name: str = "root"
    left: int = 4


async def _later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def _future(value: Any) -> asyncio.Future[Any]:
    loop = asyncio.get_running_loop()
    made = loop.create_future()
    loop.call_soon(made.set_result, value)
    return made


async def _raise(_: Any = None) -> Any:
    await asyncio.sleep(0)
    raise ValueError("late")


def _boom(*_: Any) -> Any:
    raise ValueError("now")


async def _stream(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
        await asyncio.sleep(0)


def _below(source: Thing, name: str) -> Thing:
    return Thing(f"{source.name}/{name}", source.left - 1)


RESOLVERS: dict[str, Any] = {
    "text": SourceResolver(lambda source: source.name),
    "number": SourceResolver(lambda source: len(source.name)),
    "ratio": lambda *_: 7,
    "colour": lambda *_: "BLUE",
    "none": SourceResolver(lambda _: None),
    "yes": SourceResolver(lambda _: True),
    "id": lambda *_: 7,
    "never": lambda *_: None,
    "wrong": lambda *_: "no number",
    "boom": _boom,
    "lateBoom": lambda *_: _raise(),
    "exception": lambda *_: ValueError("returned"),
    "late": lambda source, _: _later(source.name),
    "future": lambda *_: _future(7),
    "place": lambda _, info: f"{info.field_name} at {info.path.as_list()} of {info.parent_type} by {info.context}",
    "double": lambda _, _info, of: None if of is None else 2 * of,
    "needs": lambda _, _info, of: of,
    "inner": lambda source, _: _below(source, "inner"),
    "sure": SourceResolver(lambda source: _below(source, "sure")),
    "lateInner": lambda source, _: _later(_below(source, "lateInner")),
    "nothing": lambda *_: None,
    "named": lambda source, _: source,
    "list": lambda source, _: [_below(source, str(number)) for number in range(3)],
    "holes": lambda source, _: (_below(source, "0"), None, _later(_below(source, "1"))),
    "lateList": lambda source, _: _future([_below(source, "0"), _below(source, "1")]),
    "stream": lambda source, _: _stream([_below(source, "0"), _below(source, "1")]),
    "numbers": lambda *_: [1, 2, 3],
    "grid": lambda *_: [[1, None], None, (2,)],
    "promises": lambda *_: [_later(1), 2, _future(3)],
    "brokenList": lambda source, _: [_below(source, "0"), ValueError("item")],
    "set": lambda *_: {1},
    "lessInner": lambda source, _: _below(source, "less") if source.left > 2 else None,
}


def _schema() -> GraphQLSchema:
    schema = build_schema(SDL)
    query = schema.query_type
    assert isinstance(query, GraphQLObjectType)
    for name, resolver in RESOLVERS.items():
        query.fields[name].resolve = resolver
    named: Any = schema.type_map["Named"]
    named.resolve_type = lambda *_: "Query"
    return schema


SCHEMA = _schema()
FUNCTION = Function(name="things", schema=SCHEMA, root=Thing(), context=lambda request: request.request_id)
LIMITS = QueryLimits(aliases=1000, root_fields=1000, fields=100_000, tokens=100_000, repeats=1000, seconds=60)
EVALUATOR = Evaluator(FUNCTION, LIMITS)

VALUES = ["text", "number", "ratio", "colour", "none", "yes", "id", "late", "future", "place", "numbers", "grid", "promises"]
FAILING = ["wrong", "boom", "lateBoom", "exception", "set"]
ARGUMENTS = [
    "__typename",
    "double",
    "a: double(of: 3)",
    "b: double(of: $n)",
    "c: double(of: null)",
    "needs(of: 1)",
    "d: needs(of: $m)",
]
OBJECTS = ["inner", "sure", "lateInner", "nothing", "list", "holes", "lateList", "stream", "lessInner"]
DIRECTIVES = ["", "", "", "@skip(if: $yes)", "@include(if: $yes)", "@include(if: false)"]


def _selections(values: list[str], objects: list[str]) -> st.SearchStrategy[str]:
    """Selections in the text of a query, four levels deep at most."""
    leaf = st.builds("{} {}".format, st.sampled_from(values), st.sampled_from(DIRECTIVES))

    def inside(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        nested = st.builds("{} {} {{ {} }}".format, st.sampled_from(objects), st.sampled_from(DIRECTIVES), below)
        inline = st.builds("... on Query {} {{ {} }}".format, st.sampled_from(DIRECTIVES), below)
        return st.lists(leaf | nested | inline | st.just("...F"), min_size=1, max_size=4).map(" ".join)

    flat = st.lists(leaf, min_size=1, max_size=3).map(" ".join)
    return inside(inside(inside(flat)))


async def both(body: str, variables: dict[str, Any]) -> tuple[Any, ExecutionResult]:
    """The result by a plan, and the result of graphql-core."""
    declared = "query($n: Int, $m: Int! = 5, $yes: Boolean! = true)" if "$" in body else "query"
    uses = "u: double(of: $n) v: needs(of: $m) w: text @skip(if: $yes)" if "$" in body else ""
    query = f"{declared} {{ {body} {uses} ...F }} fragment F on Query {{ text list {{ place }} }}"
    document = parse(query)
    assert validate(SCHEMA, document) == []
    found = await EVALUATOR.evaluate(GraphQLRequest(query, variables, request_id="r"))
    expected = execute(SCHEMA, document, Thing(), "r", variables)
    return found.document, expected if isinstance(expected, ExecutionResult) else await expected


def agrees(found: dict[str, Any], expected: ExecutionResult) -> None:
    """Data as graphql-core has it, with the same order of keys, and errors at the same places."""
    assert found.get("data") == expected.data
    assert str(found.get("data")) == str(expected.data)
    places = [(error.path, error.formatted.get("locations")) for error in expected.errors or ()]
    told = [(error.get("path"), error.get("locations")) for error in found.get("errors", ())]
    assert sorted(told, key=str) == sorted(places, key=str)


_OPTIONAL = {"n": st.none() | st.integers(-5, 5), "m": st.integers(1, 3), "yes": st.booleans()}
_VARIABLES = st.fixed_dictionaries({}, optional=_OPTIONAL)


@settings(deadline=None, max_examples=50)
@given(_selections([*VALUES, *ARGUMENTS], OBJECTS), _VARIABLES)
@example("inner { lateInner { list { late place } } } holes { text } grid", {})
@example("b: double(of: $n) inner @include(if: $yes) { d: needs(of: $m) }", {"n": None, "yes": False})
def test_a_plan_has_the_result_of_graphql_core(body: str, variables: dict[str, Any]) -> None:
    agrees(*asyncio.run(both(body, variables)))


@settings(deadline=None, max_examples=50)
@given(_selections([*VALUES[:4], *FAILING, "late"], OBJECTS), _VARIABLES)
@example("list { boom late }", {})
@example("named { text ... on Query { late } } list { named { text } }", {})
@example("sure { sure { never } } list { never }", {})
@example("lateInner { never } lateList { lateBoom }", {})
@example("brokenList { text }", {})
def test_errors_are_as_graphql_core_reports_them(body: str, variables: dict[str, Any]) -> None:
    with capture_logs():
        agrees(*asyncio.run(both(body, variables)))


# Waits, time and turns


async def test_nested_queries_with_waits_need_no_engine(engine_runs: list[object]) -> None:
    body = "sure { lateInner { list { late place grid promises } holes { text } stream { lateList { future } } } }"
    agrees(*await both(body, {}))
    agrees(*await both(f"{body} b: double(of: $n)", {"n": 2}))
    assert engine_runs == []


async def test_a_failed_wait_ends_the_others_and_the_engine_begins_with_another_context() -> None:
    """Values that are still awaited are given up, before the engine asks for them again."""
    contexts: list[Recording] = []
    running = most = given_up = 0

    class Recording(RequestContext):
        def __init__(self) -> None:
            self.ended = False
            contexts.append(self)

        async def end(self) -> None:
            self.ended = True

    async def slow(*_: Any) -> str:
        nonlocal running, most, given_up
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            given_up += 1
            raise
        finally:
            running -= 1
        return "slow"

    schema = build_schema("type Query { slow: String boom: String }")
    assert schema.query_type is not None
    schema.query_type.fields["slow"].resolve = slow
    schema.query_type.fields["boom"].resolve = lambda *_: _raise()
    evaluator = Evaluator(Function(name="slow", schema=schema, context=lambda _: Recording()))
    with capture_logs():
        result = await evaluator.evaluate(GraphQLRequest("{ slow boom }"))
    assert result.document["data"] == {"slow": "slow", "boom": None}
    assert [error["path"] for error in result.document["errors"]] == [["boom"]]
    assert ([context.ended for context in contexts], running, most, given_up) == ([True, True], 0, 1, 1)


def _many(items: int, resolve: Any) -> Function:
    """A function with a list of objects whose field has this resolver."""
    schema = build_schema("type Query { items: [Item!]! } type Item { value: Int }")
    assert schema.query_type is not None
    item = schema.type_map["Item"]
    assert isinstance(item, GraphQLObjectType)
    schema.query_type.fields["items"].resolve = lambda *_: list(range(items))
    item.fields["value"].resolve = resolve
    return Function(name="many", schema=schema)


async def test_others_have_turns_while_a_plan_runs() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def busy(source: int, _info: Any) -> int:
        until = time.thread_time() + 0.0005
        while time.thread_time() < until:
            pass
        return source

    task = asyncio.create_task(others())
    result = await Evaluator(_many(40, busy)).evaluate(GraphQLRequest("{ items { value } }"))
    task.cancel()
    assert len(result.document["data"]["items"]) == 40
    assert turns >= 10


async def test_a_plan_ends_when_the_time_is_over(engine_runs: list[object]) -> None:
    resolved = 0

    def slow(source: int, _info: Any) -> int:
        nonlocal resolved
        resolved += 1
        time.sleep(0.005)
        return source

    evaluator = Evaluator(_many(100, slow), QueryLimits(seconds=0.02))
    result = await evaluator.evaluate(GraphQLRequest("{ items { value } }"))
    assert (result.outcome, "data" in result.document, engine_runs) == (QueryOutcome.OUT_OF_TIME, False, [])
    assert resolved < 20
