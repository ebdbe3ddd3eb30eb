"""Hostile requests of 20 kinds for the function `pantry`: oversized, costly to validate, costly to run, or malformed."""

from __future__ import annotations

import json
from typing import Any

import attrs
from graphql import get_introspection_query

PATH = "/function/pantry"
TEXT, JSON = "text/plain", "application/json"


@attrs.frozen
class Hostile:
    """A request, and the code of its errors: None if it is answered with data, a status if it does not reach the function."""

    body: bytes
    code: str | int | None
    content_type: str = TEXT


def _variables(query: str, **variables: Any) -> bytes:
    return json.dumps({"query": query, "variables": variables}).encode()


def _times(count: int, text: str) -> str:
    """A text for each number from 0, with the number for each `#`."""
    return " ".join(text.replace("#", str(number)) for number in range(count))


_FULL = "types { name fields { name args { name type { name ofType { name } } } type { name fields { name type { name } } } } }"
_CIRCLE = "type { fields { " * 6 + "name" + " } }" * 6
_LARGEST = (
    "{ products(first: 900) { nodes { name quantity category { name } movements(first: 4)"
    " { nodes { kind amount createdAt product { name } } } } } }"
)
_PAST = """{ products(first: 900, asOf: "2026-01-03T12:00:00Z") {
    nodes { name quantity quantityAt(time: "2026-01-02T12:00:00Z") } } }"""

KINDS: dict[str, Hostile] = {
    "20,000 aliases": Hostile(f"{{{_times(20_000, 'a#: __typename')}}}".encode(), 413),
    "3,000 aliases": Hostile(f"{{{_times(3000, 'a#:__typename')}}}".encode(), "OVER_LIMIT"),
    "500 times the same field": Hostile(f"{{ products {{ nodes {{{'name ' * 500}}} }} }}".encode(), "OVER_LIMIT"),
    "depth 300": Hostile(("{ a " * 300 + "}" * 300).encode(), "OVER_LIMIT"),
    "lists in lists": Hostile(f"{{ product(ean13: {'[' * 900}{']' * 900}) {{ name }} }}".encode(), "OVER_LIMIT"),
    "fragments that double": Hostile(
        " ".join(["{ ...f0 }", *(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(30))]).encode()
        + b" fragment f30 on Query { __typename }",
        "OVER_LIMIT",
    ),
    "fragments in circles": Hostile(
        " ".join(["{ ...f0 }", *(f"fragment f{n} on Query {{ ...f{(n + 1) % 200} }}" for n in range(200))]).encode(),
        "OVER_LIMIT",
    ),
    "400 directives": Hostile(("{ __typename " + "@skip(if: false)" * 400 + "}").encode(), "OVER_LIMIT"),
    "1,900 unknown fields": Hostile(
        f"{{ products {{ nodes {{ {_times(1900, 'x#')} }} }} }}".encode(), "GRAPHQL_VALIDATION_FAILED"
    ),
    "450 unused variables": Hostile(f"query({_times(450, '$v#: Int')}) {{ __typename }}".encode(), "GRAPHQL_VALIDATION_FAILED"),
    "3,000 wrong values": Hostile(
        _variables("query($f: MovementFilter) { movements(filter: $f) { totalCount } }", f={f"x{n}": n for n in range(3000)}),
        "BAD_USER_INPUT",
        JSON,
    ),
    "introspection": Hostile(get_introspection_query().encode(), None),
    "introspection, 15 times": Hostile(f"{{ {_times(15, f'a#: __schema {{ {_FULL} }}')} }}".encode(), "OVER_LIMIT"),
    "introspection in circles": Hostile(
        f"{{ __schema {{ types {{ fields {{ {_CIRCLE} }} }} }} }}".encode(), "GRAPHQL_VALIDATION_FAILED"
    ),
    "pages of 1,000 in pages of 1,000": Hostile(
        b"{ products(first: 1000) { nodes { movements(first: 1000) { nodes { id } } } } }", "OVER_LIMIT"
    ),
    "the largest result": Hostile(_LARGEST.encode(), None),
    "the largest result of the past": Hostile(_PAST.encode(), None),
    "15 reports over all rows": Hostile(
        f"{{ {_times(15, 'a#: shoppingList(first: 1) { nodes { name } totalCount }')} }}".encode(), None
    ),
    "made-up cursors and integers": Hostile(
        _variables('query($n: Int) { products(first: $n, after: "AAAA") { nodes { name } } }', n=10**40), "BAD_USER_INPUT", JSON
    ),
    "30,000 lists in a body": Hostile(b"[" * 30_000, "BAD_REQUEST", JSON),
}
"""By name."""
