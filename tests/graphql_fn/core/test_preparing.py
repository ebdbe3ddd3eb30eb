"""Documents are prepared once, and a plan gives the result that the engine gives."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import GraphQLError, GraphQLSchema, build_schema

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import RequestRefused
from graphql_fn.core.running.engine import run
from tests.graphql_fn.core.troubles import documents


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
    for name in ("documents.nested_plan", "preparation.nested_plan"):
        monkeypatch.setattr(f"graphql_fn.core.preparing.{name}", lambda *_: None)
    expected = await Evaluator(function).evaluate(request)
    assert found == [expected, expected]
