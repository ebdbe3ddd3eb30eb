"""Bounds of queries: size, depth, cost, time, and the hidden parts of a schema."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from graphql import Lexer, Source, Token, TokenKind, get_introspection_query
from hypothesis import example, given
from hypothesis import strategies as st

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.cost import SCHEMA_OBJECT
from graphql_fn.core.preparing.tokens import exceeds
from graphql_fn.core.result import OperationResult, QueryOutcome
from graphql_fn.readmodels.pantry.function import SCHEMA as PANTRY
from graphql_fn.readmodels.tracker.function import SCHEMA as TRACKER
from tests.graphql_fn.core.troubles import ask, messages, trouble
from tests.support.pace import within


async def timed(query: str, evaluator: Evaluator) -> tuple[OperationResult, float]:
    """A result, and the least processor time of three tries, in seconds: of all threads, since one prepares the query."""

    async def once() -> tuple[OperationResult, float]:
        started = time.process_time()
        return await ask(query, evaluator=evaluator), time.process_time() - started

    tries = [await once() for _ in range(3)]
    return tries[0][0], min(seconds for _, seconds in tries)


# Hidden parts


async def test_introspection_and_suggestions_can_be_switched_off() -> None:
    closed = Evaluator(HELLO, introspection=False)
    assert messages(await ask("{ hell }", evaluator=closed)) == ["Cannot query field 'hell' on type 'Query'."]
    result = await ask("{ __schema { queryType { name } } }", evaluator=closed)
    assert (result.outcome, "data" in result.document) == (QueryOutcome.REFUSED, False)
    assert "introspection" in messages(result)[0]
    assert (await ask("{ __typename }", evaluator=closed)).document == {"data": {"__typename": "Query"}}
    kept = Evaluator(HELLO, introspection=False, suggestions=True)
    assert "Did you mean" in messages(await ask("{ hell }", evaluator=kept))[0]
    half = Evaluator(HELLO, suggestions=False)
    assert "Did you mean" not in messages(await ask("{ hell }", evaluator=half))[0]


async def test_tools_can_ask_for_the_whole_schema_within_the_limits() -> None:
    for options in ({}, {"input_value_deprecation": True, "specified_by_url": True, "schema_description": True}):
        result = await ask(get_introspection_query(**options), evaluator=trouble())
        assert not result.failed


# Bounds


def _nested(levels: int) -> str:
    return "{ deeper " * (levels - 1) + "{ hello }" + "}" * (levels - 1)


LONG = " ".join(f"a{number}: hello" for number in range(20_000))
OVER = {
    "20,000 aliases": "{" + LONG + "}",
    "16 aliases": "{" + " ".join(f"a{number}: hello" for number in range(16)) + "}",
    "16 aliases by fragments": "{" + "...f " * 16 + "} fragment f on Query { a: hello }",
    "depth 11": _nested(11),
    "depth 11 by fragments": "{ deeper { ...f } } fragment f on Query " + _nested(10),
    "depth 300": _nested(300),
    "depth 9,000": "{a" * 9000 + "}" * 9000,
    "lists in lists": "{ double(of: " + "[" * 900 + "]" * 900 + ") }",
    "21 root fields": "{" + "...{ hello } " * 21 + "}",
    "repeated fields": "{ deeper {" + "hello " * 60 + "} }",
    "repeated fields in an unused fragment": "{ hello } fragment f on Query {" + "deeper { who } " * 400 + "}",
    "fragments that double": "{ deeper { ...f0 } }"
    + "".join(f" fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(30))
    + " fragment f30 on Query { hello }",
    "many tokens": "{ hello " + "@skip(if: false) " * 400 + "}",
    "6 directives at a field": "{ hello " + "@skip(if: false)" * 6 + "}",
    "6 unknown directives at a spread": "{ ...f @a@a@a@a@a@a } fragment f on Query { hello }",
    "6 directives at an operation": "query " + "@a" * 6 + "{ hello }",
    "6 directives at a fragment": "{ ...f } fragment f on Query " + "@a" * 6 + " { hello }",
    "6 directives at a variable": "query($v: Int " + "@a" * 6 + ") { double(of: $v) }",
    "many comments": "#\n" * 3000 + "{ hello }",
    "many characters": "{ hello }" + " " * 70_000,
}


@pytest.mark.parametrize("name", OVER)
async def test_a_query_over_a_limit_is_refused_at_once(name: str) -> None:
    evaluator = trouble()
    result, seconds = await timed(OVER[name], evaluator)
    assert seconds < 0.1
    assert (result.outcome, "data" in result.document) == (QueryOutcome.OVER_LIMIT, False)
    assert len(evaluator.documents) == 0


@pytest.mark.parametrize(
    "query",
    [
        "{" + " ".join(f"a{number}: hello" for number in range(15)) + "}",
        _nested(10),
        "{ ...f } fragment f on Query { ...g } fragment g on Query { deeper { ...h } } fragment h on Query { hello }",
    ],
)
async def test_a_query_at_a_limit_is_answered(query: str) -> None:
    assert not (await ask(query)).failed


WORST = {
    "unknown fields": "{ deeper {" + " ".join(f"x{number}" for number in range(1900)) + "} }",
    "unused variables": "query(" + " ".join(f"$v{number}: Int" for number in range(450)) + ") { hello }",
    "many fragments": "{ deeper {"
    + "".join(f"...f{n} " for n in range(51))
    + "} }"
    + "".join(f" fragment f{n} on Query {{ hello }}" for n in range(51)),
    "fragments in circles": "{ ...f0 }" + "".join(f" fragment f{n} on Query {{ ...f{(n + 1) % 200} }}" for n in range(200)),
    "a string of quotes without an end": '"' + '\\"' * 32_700,
    "strings without an end that begin with a backslash": '"\\' * 32_700,
    "a block string of quotes without an end": '"""' + '\\"""' * 16_300,
    "a block string of pairs of quotes without an end": '"""' + '""\\' * 21_800,
    "block strings without an end": '"""a\\' * 13_000,
    "pairs": "{" + "deeper { deeper { deeper { hello who told } } } " * 15 + "}",
}


@pytest.mark.parametrize("name", WORST)
async def test_the_worst_that_the_limits_let_through_is_judged_quickly(name: str) -> None:
    _, seconds = await timed(WORST[name], trouble())
    assert seconds < 0.25


async def test_a_resolver_that_takes_too_long_is_given_up() -> None:
    with within(10):
        result = await ask("{ hello slow }", evaluator=trouble(limits=QueryLimits(seconds=0.05)))
    assert (result.outcome, messages(result)) == (QueryOutcome.OUT_OF_TIME, ["the query took longer than 0.05 s"])


async def test_a_look_at_the_sizes_of_tables_that_takes_too_long_is_given_up() -> None:
    async def rows() -> dict[str, int]:
        await asyncio.sleep(30)
        return {}

    function = Function(name="slow", schema=HELLO.schema, scans={"Query.hello": ("greetings",)}, rows=rows)
    with within(10):
        result = await ask("{ hello }", evaluator=Evaluator(function, QueryLimits(seconds=0.05)))
    assert (result.outcome, messages(result)) == (QueryOutcome.OUT_OF_TIME, ["the query took longer than 0.05 s"])


async def test_resolvers_that_do_not_wait_are_given_up_too() -> None:
    """The second field of fifteen is not resolved any more: the limit does not need an await to be seen."""
    evaluator = trouble(limits=QueryLimits(seconds=0.01))
    busy = " ".join(f"a{number}: busy" for number in range(15))
    result = await ask(f"{{ {busy} }}", evaluator=evaluator)
    assert (result.outcome, "data" in result.document) == (QueryOutcome.OUT_OF_TIME, False)
    assert evaluator.function.root.runs <= 1


async def test_objects_of_the_schema_are_counted_as_the_result_has_them() -> None:
    """In each place of use, and through lists in lists, which no size in the query bounds."""

    def objects(value: Any) -> int:
        if isinstance(value, list):
            return sum(map(objects, value))
        return 1 + sum(map(objects, value.values())) if isinstance(value, dict) else 0

    inner = "{ name fields { ...F type { name fields { name } ofType { name } } args { type { name } } } }"
    queries = [
        f"{{ __schema {{ types {inner} directives {{ args {{ name }} }} }} }} fragment F on __Field {{ name }}",
        f'{{ __type(name: "Query") {inner} }} fragment F on __Field {{ type {{ kind }} }}',
        'query($name: String = "Query") { __type(name: $name) { fields { name } } }',
    ]
    for query in queries:
        found = objects((await ask(query)).document["data"]) - 1
        limit = SCHEMA_OBJECT * found
        assert not (await ask(query, evaluator=trouble(limits=QueryLimits(cost=limit)))).failed
        refused = await ask(query, evaluator=trouble(limits=QueryLimits(cost=limit - 1)))
        assert refused.outcome is QueryOutcome.OVER_LIMIT
    assert (await ask('{ __type(name: "Nothing") { name } }')).document == {"data": {"__type": None}}


async def test_the_schema_cannot_be_asked_for_many_times_in_one_query() -> None:
    full = (
        "types { name fields { name args { name type { name ofType { name } } } type { name fields { name type { name } } } } }"
    )
    asked = "{ " + " ".join(f"a{number}: __schema {{ {full} }}" for number in range(15)) + " }"
    result, seconds = await timed(asked, Evaluator(pantry_function()))
    assert (result.outcome, "data" in result.document) == (QueryOutcome.OVER_LIMIT, False)
    assert seconds < 0.1


@pytest.mark.parametrize("size", ["", "(first: null)", "(first: 100)"])
async def test_a_size_that_is_null_costs_as_much_as_the_default(size: str) -> None:
    evaluator = Evaluator(Function(name="tracker", schema=TRACKER), QueryLimits(cost=199))
    [message] = messages(await ask(f"{{ events{size} {{ events {{ sequence }} }} }}", evaluator=evaluator))
    assert message.startswith("the query may come to 200 objects")


ITEMS = "category { id } ean13"


@pytest.mark.parametrize(
    ("page", "objects"),
    [
        ("totalCount pageInfo { hasNextPage }", 100),
        (f"totalCount pageInfo {{ hasNextPage }} nodes {{ {ITEMS} }}", 200),
        (f"edges {{ cursor node {{ {ITEMS} }} }}", 200),
        (f"nodes {{ {ITEMS} }} edges {{ node {{ ean13 }} }}", 300),
        (" ".join(f"a{number}: nodes {{ ean13 }}" for number in range(15)), 1500),
        ("edges { node { ean13 } again: node { ean13 } } more: edges { node { ean13 } }", 300),
    ],
)
async def test_items_of_a_page_cost_as_often_as_the_result_has_them(page: str, objects: int) -> None:
    evaluator = Evaluator(pantry_function(), QueryLimits(cost=99))
    [message] = messages(await ask(f"{{ products(first: 100) {{ {page} }} }}", evaluator=evaluator))
    assert message.startswith(f"the query may come to {objects} objects")


def pantry_function() -> Function:
    """A function with a large schema, which reads no table."""
    return Function(name="pantry", schema=PANTRY)


def _tokens(text: str) -> int:
    """As the lexer finds them: comments too, the ends of the text not."""
    lexer = Lexer(Source(text))
    token: Token | None = lexer.token
    while lexer.advance().kind is not TokenKind.EOF:
        pass
    found = []
    while token is not None:
        found.append(token.kind)
        token = token.next
    return len(found) - 2


_MARKS = ["{", "}", "(", ")", "[", "]", "...", ":", "=", "!", "$", "@", "&", "|", ","]
_WORDS = ["name", "_x1", "true", "0", "-1", "1.5", "-2.5e+3", "7E2", '""', '"a { b"', '"\\" # {"', '"\\u0041"', '""""""']
_LONG = ['\n#c { "\n', '"""block { " "" \\""" """']


@given(st.lists(st.sampled_from(_MARKS + _WORDS + _LONG), max_size=60), st.integers(0, 5))
@example(["..."] * 3, 0)
@example(['"""block { " "" \\""" """'] * 3, 1)
def test_tokens_are_counted_as_the_parser_counts_them(pieces: list[str], less: int) -> None:
    text = "  ".join(pieces)
    count = _tokens(text)
    assert exceeds(text, count) in {None, "the query is nested deeper than 100 levels"}
    if count > less:
        assert exceeds(text + " " * 200, count - less - 1) is not None
