"""The page of all routes of the services, from the same description as the OpenAPI documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import attrs

from gctd.serve import SERVICE as TRACKER
from graphql_fn.http.routes import TABLE as FUNCTIONS
from httpkit.edge import Edge, Operation, Tables
from httpkit.messages.openapi import document
from httpkit.routes import Route
from httpkit.server.guard import Guard
from pantry.serve import SERVICE as LEDGER
from reference import paragraph

_INTRODUCTION = """# Routes

This page is generated from the code. [API](../api.md), [the pantry](../../guides/pantry.md) and
[GraphQL](../../guides/graphql.md) explain the services, with examples. The OpenAPI document of a service also has the schemas of
bodies and answers: `/api/openapi.json`. Errors are problem documents (RFC 9457).
"""


_TABLES = cast("Tables", object())
"""Routes have `min_seq` only at an edge with tables, which a description does not ask."""


def text() -> str:
    """Return the page."""
    lines = [_INTRODUCTION]
    section = ""
    for service, method, path, operation in operations():
        if service != section:
            section = service
            lines += [f"## `{service}`", ""]
        lines += [f"### `{method.upper()} {path}`", "", *_operation(operation)]
    return "\n".join(lines).rstrip() + "\n"


def operations() -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield all operations: the service, the method, the path, and the description as in OpenAPI."""
    guard = Guard(token="a token")  # noqa: S106 - with some token the routes have their scopes
    services: list[tuple[str, Iterable[Route[Any]], Edge]] = [
        ("gctd", TRACKER.routes, attrs.evolve(TRACKER.edge, guard=guard, tables=_TABLES)),
        ("pantry", LEDGER.routes, attrs.evolve(LEDGER.edge, guard=guard, tables=_TABLES)),
        ("graphql-fn", FUNCTIONS, Edge(title="graphql-fn", version="", guard=guard)),
    ]
    for name, routes, edge in services:
        described = document([Operation(route, None, edge) for route in routes], edge)
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                yield name, method, path, operation


def _operation(operation: Mapping[str, Any]) -> Iterator[str]:
    summary, description = operation["summary"], operation.get("description", "")
    about = description if description.startswith(summary) else f"{summary}. {description}"
    yield from paragraph(about)
    if rows := list(_parameters(operation)):
        yield from ("| parameter | in | type | meaning |", "|---|---|---|---|", *rows, "")
    body = operation.get("requestBody")
    taken = "" if body is None else f"Body: {' or '.join(f'`{media}`' for media in body['content'])}. "
    answers = [f"{status} ({_media(answer)})" if _media(answer) else status for status, answer in operation["responses"].items()]
    yield from paragraph(f"Scope: {_scope(operation)}. {taken}Answers: {', '.join(answers)}.")


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        needed = "" if one["required"] or one["in"] == "path" else ", optional"
        yield f"| `{one['name']}` | {one['in']}{needed} | {_type(one['schema'])} | {one.get('description', '')} |".replace(
            "  |", " |"
        )


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if "const" in schema:
        return "empty" if schema["const"] == "" else f"`{schema['const']}`"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any")
    return str(schema.get("format", kind)) if isinstance(kind, str) else " or ".join(kind)


def _media(answer: Mapping[str, Any]) -> str:
    kinds = [media for media in answer.get("content", {}) if media != "application/problem+json"]
    return ", ".join(f"`{media}`" for media in kinds)


def _scope(operation: Mapping[str, Any]) -> str:
    security = operation.get("security")
    if security is None:
        return "`read`"
    return f"`{security[0]['token'][0]}`" if security else "none"
