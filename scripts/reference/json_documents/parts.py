"""Parts of the schemas of documents: small ones by hand, answers of an API by its description, and classes by their fields."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from httpkit.edge import Edge, Operation
from httpkit.messages.openapi import Schemas, document
from httpkit.routes import Route

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_OR_NO: Schema = {"type": "boolean"}
ANYTHING: Schema = {}

_COMPONENTS = "#/components/schemas/"


def object_of(**members: Schema) -> Schema:
    """Return the schema of an object that has all of these members."""
    return {"type": "object", "required": list(members), "properties": members}


def list_of(items: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {**schema, "type": [schema["type"], "null"]}


CONFIG = list_of(object_of(key=TEXT, value=ANYTHING, origin=TEXT))
"""The document of `config show` of every program."""

TOKEN = object_of(
    **dict.fromkeys(("id", "name", "scope", "state", "created_at", "expires_at"), TEXT),
    used_at=or_null(TEXT),
    revoked_at=or_null(TEXT),
    sessions=WHOLE,
)
TOKENS = {"token create": object_of(**TOKEN["properties"], token=TEXT), "token list": list_of(TOKEN)}
"""The documents of the commands for tokens of every service."""

MIGRATIONS = {
    "migrate up": list_of(TEXT),
    "migrate down": or_null(TEXT),
    "migrate version": object_of(version=WHOLE, dirty=YES_OR_NO),
}
"""The documents of the commands for migrations."""


class Types:
    """Schemas of the answers of an API, and of classes, with the parts that they refer to."""

    def __init__(self, routes: Iterable[Route[Any]] = ()) -> None:
        edge = Edge(title="", version="")
        self._described = document([Operation(route, None, edge) for route in routes], edge)
        self._classes = Schemas()
        self._encoded: dict[str, Schema] = {}

    def answer(self, operation: str) -> Schema:
        """Return the schema of the answer of an operation, named as in `GET /api/repos`, if it succeeds."""
        method, path = operation.split()
        answers = self._described["paths"][path][method.lower()]["responses"]
        first = next(status for status in sorted(answers) if status.startswith("2"))
        schema: Schema = answers[first]["content"]["application/json"]["schema"]
        return schema

    def of(self, cls: type) -> Schema:
        """Return the schema of an attrs class."""
        return self._classes.of(cls, "answer")

    def members(self, cls: type) -> Mapping[str, Schema]:
        """Return the schemas of the members of an attrs class by name."""
        found: Mapping[str, Schema] = self._classes.object(cls, "answer")["properties"]
        return found

    def encoded_members(self, cls: type, prefix: str) -> Mapping[str, Schema]:
        """Return the schemas of the members of a class, by name, as msgspec encodes them.

        The names of its parts begin with `prefix`, because classes of the core have names of answers of the API.
        """
        _, parts = msgspec.json.schema_components([cls], ref_template=f"{_COMPONENTS}{prefix}{{name}}")
        self._encoded |= {f"{prefix}{name}": _cleaned(part) for name, part in parts.items()}
        found: Mapping[str, Schema] = parts[cls.__name__]["properties"]
        return found

    def whole(self, documents: Mapping[str, Schema]) -> Schema:
        """Return the schemas of all documents of a program by command, with the shared parts in `$defs`.

        Raises ValueError if two different parts have one name.
        """
        answers, classes = self._described["components"]["schemas"], self._classes.components
        for name in answers.keys() & classes.keys():
            if answers[name] != classes[name]:
                raise ValueError(f"two parts are called {name}")
        parts = answers | classes | self._encoded
        used = _used(documents, parts)
        found: Schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "documents": documents,
            "$defs": {name: part for name, part in parts.items() if name in used},
        }
        opened: Schema = _opened(found)
        return opened


def _cleaned(part: Schema) -> Schema:
    """Return a part without the indentation that its docstring has in the source."""
    return {**part, "description": inspect.cleandoc(part["description"])} if "description" in part else part


def _used(documents: Mapping[str, Schema], parts: Mapping[str, Schema]) -> set[str]:
    """Return the names of the parts that a document has, also through other parts."""
    seen: set[str] = set()
    waiting = list(_references(documents))
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += _references(parts[one])
    return seen


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.removeprefix(_COMPONENTS)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _opened(node: Any) -> Any:
    """Return the schema with references into `$defs`. Further members are allowed, because versions add members."""
    if isinstance(node, dict):
        return {
            key: value.replace(_COMPONENTS, "#/$defs/") if key == "$ref" else _opened(value)
            for key, value in node.items()
            if not (key == "additionalProperties" and value is False)
        }
    return [_opened(value) for value in node] if isinstance(node, list) else node
