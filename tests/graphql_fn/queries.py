"""Queries and their results: the same whichever way the function is called."""

from __future__ import annotations

from typing import Any

GREETING = "Hello world! from OpenFaaS"


VALIDATION, SYNTAX = "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED"


def error(message: str, line: int | None = None, column: int | None = None, code: str = VALIDATION) -> dict[str, Any]:
    """The result of a request that was not run, with one error."""
    place = {} if line is None else {"locations": [{"line": line, "column": column}]}
    return {"errors": [{"message": message, **place, "extensions": {"code": code}}]}


TABLE: dict[str, dict[str, Any]] = {
    "{ hello }": {"data": {"hello": GREETING}},
    "{hello}": {"data": {"hello": GREETING}},
    "query Greet { hello }": {"data": {"hello": GREETING}},
    "{ a: hello b: hello }": {"data": {"a": GREETING, "b": GREETING}},
    "{ ...f } fragment f on Query { hello __typename }": {"data": {"hello": GREETING, "__typename": "Query"}},
    "{ hello @skip(if: true) }": {"data": {}},
    '{ __type(name: "Query") { fields { name } } }': {"data": {"__type": {"fields": [{"name": "hello"}]}}},
    "# größe\n{ hello }": {"data": {"hello": GREETING}},
    "{hell}": error("Cannot query field 'hell' on type 'Query'. Did you mean 'hello'?", 1, 2),
    "{\n  hell\n}": error("Cannot query field 'hell' on type 'Query'. Did you mean 'hello'?", 2, 3),
    "{ xyz }": error("Cannot query field 'xyz' on type 'Query'.", 1, 3),
    "{": error("Syntax Error: Expected Name, found <EOF>.", 1, 2, SYNTAX),
    "": error("Syntax Error: Unexpected <EOF>.", 1, 1, SYNTAX),
    "query A { hello } query B { hello }": error(
        "Must provide operation name if query contains multiple operations.", code="BAD_REQUEST"
    ),
    "mutation { x }": error("The mutation operation is not supported by the schema.", 1, 1),
}
"""By the text of the query."""
