"""The evaluation core: masking, bounds, hidden parts and its cache."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from graphql import GraphQLError, GraphQLSchema, Lexer, Source, Token, TokenKind, build_schema, get_introspection_query
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from graphql_fn.core.errors import PublicError
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO, SCHEMA
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.preparing.cost import SCHEMA_OBJECT
from graphql_fn.core.preparing.documents import Documents
from graphql_fn.core.preparing.tokens import exceeds
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome, RequestRefused, Result
from graphql_fn.core.running.engine import run
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.pantry import SCHEMA as PANTRY
from tests.support.pace import within

_SDL = """
type Query {
  hello: String
  boom: String
  wrong: String
  never: Int!
  told: String
  slow: String
  busy: String
  list: [String]
  double(of: Int!): Int
  deeper: Query
  who: String
}
type Mutation { change: String }
type Subscription { ticks: Int }
"""


class Root:
    """Resolvers that fail in every way."""

    hello = "hi"
    change = "changed"
    never = None
    runs = 0
    """How often the busy resolver ran."""

    def boom(self, _info: Any) -> str:
        raise ValueError("secret")

    def wrong(self, _info: Any) -> object:
        return {"secret": 1}

    def told(self, _info: Any) -> str:
        raise PublicError("this is for you")

    async def slow(self, _info: Any) -> str:
        await asyncio.sleep(30)
        return "late"

    def busy(self, _info: Any) -> str:
        self.runs += 1
        time.sleep(0.02)
        return "done"

    def list(self, _info: Any) -> Any:
        return [ValueError("secret") for _ in range(250)]

    def double(self, _info: Any, of: int) -> int:
        return 2 * of

    def deeper(self, _info: Any) -> Root:
        return self

    def who(self, info: Any) -> str:
        return str(info.context["who"])


def trouble(**options: Any) -> Evaluator:
    function = Function(
        name="trouble",
        schema=build_schema(_SDL),
        root=Root(),
        context=lambda request: {"who": (request.extensions or {}).get("who")},
    )
    return Evaluator(function, **options)


async def ask(query: str, *, evaluator: Evaluator | None = None, **more: Any) -> Result:
    return await (evaluator or trouble()).evaluate(GraphQLRequest(query, **more))


async def timed(query: str, evaluator: Evaluator) -> tuple[Result, float]:
    """A result, and the least processor time of three tries, in seconds: of all threads, since one prepares the query."""

    async def once() -> tuple[Result, float]:
        started = time.process_time()
        return await ask(query, evaluator=evaluator), time.process_time() - started

    tries = [await once() for _ in range(3)]
    return tries[0][0], min(seconds for _, seconds in tries)


def messages(result: Result) -> list[str]:
    return [error["message"] for error in result.document["errors"]]


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The lines of the log, as values."""
    with capture_logs() as lines:
        yield lines


# Answers


async def test_what_an_exception_says_is_logged_with_the_request_id_and_not_told(logs: list[Any]) -> None:
    result = await ask("{ hello boom }", request_id="r-1")
    [error] = result.document["errors"]
    assert error == {
        "message": "internal server error",
        "locations": [{"line": 1, "column": 9}],
        "path": ["boom"],
        "extensions": {"code": "INTERNAL_SERVER_ERROR", "requestId": "r-1"},
    }
    assert result.document["data"] == {"hello": "hi", "boom": None}
    [line] = logs
    assert (line["event"], line["request_id"], line["path"]) == ("resolver failed", "r-1", ["boom"])
    assert str(line["exc_info"]) == "secret"


async def test_a_request_without_an_id_is_given_one_for_its_errors() -> None:
    found = [(await ask("{ boom }")).document["errors"][0]["extensions"]["requestId"] for _ in range(2)]
    assert all(found)
    assert found[0] != found[1]


async def test_a_value_that_a_resolver_should_not_have_given_is_not_told() -> None:
    assert "secret" not in str((await ask("{ wrong }")).document)


async def test_a_null_where_none_may_be_leaves_data_that_is_null() -> None:
    result = await ask("{ never }")
    assert (result.document["data"], result.outcome) == (None, QueryOutcome.EXECUTED)


async def test_an_error_that_is_meant_for_the_client_is_told() -> None:
    assert messages(await ask("{ told }")) == ["this is for you"]


async def test_what_is_wrong_with_an_argument_is_told() -> None:
    [message] = messages(await ask("query($v: Int = 1) { double(of: $v) }", variables={"v": None}))
    assert "'of'" in message
    [message] = messages(await ask("query($v: Int!) { double(of: $v) }", variables={"v": "x"}))
    assert message.startswith("Variable '$v' has invalid value")


async def test_a_result_tells_of_so_many_errors_and_says_how_many_more_there_are() -> None:
    result = await ask("{ list }")
    assert len(result.document["errors"]) == 101
    assert messages(result)[-1] == "150 further errors are not shown"
    many = "{" + " ".join(f"x{number}" for number in range(15)) + "}"
    assert len((await ask(many, evaluator=trouble(limits=QueryLimits(errors=5)))).document["errors"]) == 6


async def test_the_context_is_made_for_each_request() -> None:
    evaluator = trouble()
    found = [await ask("{ who }", evaluator=evaluator, extensions={"who": who}) for who in ("a", "b")]
    assert [result.document["data"]["who"] for result in found] == ["a", "b"]


async def test_a_mutation_is_refused_where_only_queries_are_taken() -> None:
    assert (await ask("mutation { change }")).document == {"data": {"change": "changed"}}
    result = await ask("mutation { change }", only_queries=True)
    assert (result.outcome, "data" in result.document) == (QueryOutcome.CHANGES, False)


async def test_a_subscription_has_no_single_result() -> None:
    result = await ask("subscription { ticks }")
    hint = "a subscription has no single result: ask for it with Accept: text/event-stream"
    assert (result.outcome, messages(result)) == (QueryOutcome.REFUSED, [hint])


class Ticking(Root):
    """Events: one without a value, and two with a value, of which the second cannot be resolved. Then it cannot continue."""

    def __init__(self) -> None:
        self.closed = False

    async def ticks(self, _info: Any) -> AsyncIterator[SubscriptionEvent]:
        try:
            yield SubscriptionEvent("1")
            yield SubscriptionEvent("2", {"ticks": 7})
            yield SubscriptionEvent("3", {"ticks": "secret"})
            raise PublicError("that was all")
        finally:
            self.closed = True


def ticking() -> tuple[Evaluator, Ticking]:
    root = Ticking()
    return Evaluator(Function(name="ticking", schema=build_schema(_SDL), root=root)), root


async def test_each_event_of_a_subscription_is_a_result_of_its_own(logs: list[Any]) -> None:
    evaluator, root = ticking()
    found = await evaluator.subscribe(GraphQLRequest("subscription S { ticks }"))
    assert not isinstance(found, Result)
    updates = [(update.id, update.result and update.result.document) async for update in found]
    assert updates[:2] == [("1", None), ("2", {"data": {"ticks": 7}})]
    assert updates[2][0] == "3"
    assert "secret" not in str(updates)
    assert updates[3] == (None, {"errors": [{"message": "that was all", "extensions": {"code": "BAD_USER_INPUT"}}]})
    assert (len(updates), root.closed, len(logs)) == (4, True, 1)


async def test_a_subscription_that_is_given_up_closes_its_source() -> None:
    evaluator, root = ticking()
    found = await evaluator.subscribe(GraphQLRequest("subscription { ticks }"))
    assert not isinstance(found, Result)
    assert (await anext(found)).id == "1"
    await found.aclose()
    assert root.closed


@pytest.mark.parametrize(
    "query", ["subscription { tocks }", "{ hello }", "subscription {", "subscription($a: Int!) { ticks(of: $a) }"]
)
async def test_what_is_no_subscription_that_can_be_run_has_one_result(query: str) -> None:
    found = await ticking()[0].subscribe(GraphQLRequest(query))
    assert isinstance(found, Result)
    assert found.outcome is (QueryOutcome.EXECUTED if query == "{ hello }" else QueryOutcome.REFUSED)


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


# The cache of documents


def documents(schema: GraphQLSchema = SCHEMA, **options: Any) -> Documents:
    return Documents(schema, QueryLimits(), introspection=True, suggestions=True, **options)


def test_a_document_is_parsed_and_validated_once() -> None:
    known = documents()
    first = known.get("{ hello }")
    assert known.get("{ hello }") is first
    assert (known.hits, known.misses) == (1, 1)


def test_the_documents_that_were_used_last_are_kept_and_no_more() -> None:
    known = documents(kept=2)
    texts = [f"{{ a{number}: hello }}" for number in range(3)]
    first = known.get(texts[0])
    known.get(texts[1])
    known.get(texts[0])
    known.get(texts[2])
    assert len(known) == 2
    assert known.get(texts[0]) is first
    assert (known.hits, known.misses) == (2, 3)


def test_long_texts_do_not_fill_the_memory() -> None:
    known = documents(characters=1000)
    for number in range(10):
        known.get(f"{{ a{number}: hello }}" + " " * 280)
    assert len(known) == 3


def test_a_text_that_is_wrong_is_not_kept() -> None:
    known = documents()
    for text in ("{ hell }", "{"):
        with pytest.raises(RequestRefused) as caught:
            known.get(text)
        assert all(isinstance(error, GraphQLError) for error in caught.value.errors)
    assert len(known) == 0


# Work without an executor


async def _later(*_: Any) -> str:
    return "later"


def _failing(*_: Any) -> str:
    raise ValueError("secret")


def _resolved() -> GraphQLSchema:
    """Fields that have a resolver each, ordinary and not."""
    schema = build_schema(
        """
        enum Colour { RED BLUE }
        type Query {
          text: String  number: Int!  colour: Colour  none: String  never: String!  wrong: Int  failing: String
          later: String  promised: String  list: [String]  inner: Query  who: String
          double(of: Int = 4): Int  needs(of: Int!): Int
        }"""
    )
    resolvers: dict[str, Any] = {
        "text": lambda root, _info: f"{root} text",
        "number": lambda *_: 7,
        "colour": lambda *_: "BLUE",
        "none": lambda *_: None,
        "never": lambda *_: None,
        "wrong": lambda *_: "no number",
        "failing": _failing,
        "later": _later,
        "promised": lambda *_: _later(),
        "list": lambda *_: ["a"],
        "inner": lambda root, _info: root,
        "who": lambda _root, info: f"{info.context} asks {info.field_name} at {info.path.as_list()} of {info.parent_type}",
        "double": lambda _root, _info, of: 2 * of,
        "needs": lambda _root, _info, of: of,
    }
    assert schema.query_type is not None
    for name, resolver in resolvers.items():
        schema.query_type.fields[name].resolve = resolver
    return schema


@pytest.mark.parametrize(
    ("query", "has_plan"),
    [
        ("{ text number colour none double a: double(of: -3) who }", True),
        ("query Named { b: who }", True),
        ("query One { text } query Two { number }", True),
        ("{ text never }", False),
        ("{ text wrong }", False),
        ("{ failing text }", False),
        ("{ later }", True),
        ("{ text promised }", True),
        ("{ list }", True),
        ("{ inner { text } }", True),
        ("{ text text }", True),
        ("{ text @skip(if: true) number }", True),
        ("query($of: Int = 2) { double(of: $of) }", True),
        ("{ ...F } fragment F on Query { text }", True),
        ("{ __typename text }", True),
        ("{ inner { inner { who number } } }", True),
        ("{ inner { never } }", False),
        ("{ text __schema { queryType { name } } }", True),
    ],
)
async def test_a_query_with_a_plan_has_the_result_that_the_engine_gives(
    monkeypatch: pytest.MonkeyPatch, query: str, has_plan: bool
) -> None:
    function = Function(name="plain", schema=_resolved(), root="root", context=lambda request: request.extensions)
    runs: list[object] = []

    def counted(*given: Any) -> Any:
        runs.append(given)
        return run(*given)

    monkeypatch.setattr("graphql_fn.core.evaluator.run", counted)
    request = GraphQLRequest(query, extensions={"who": "me"}, operation="Two" if "Two" in query else None, request_id="r")
    evaluator = Evaluator(function)
    found = [await evaluator.evaluate(request) for _ in range(2)]
    assert (not runs) is has_plan
    for name in ("documents.plan_of", "documents.nested_plan", "preparation.nested_plan"):
        monkeypatch.setattr(f"graphql_fn.core.preparing.{name}", lambda *_: None)
    expected = await Evaluator(function).evaluate(request)
    assert found == [expected, expected]
