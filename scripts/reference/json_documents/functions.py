"""Documents of `graphql-fn`."""

from __future__ import annotations

from reference.json_documents.parts import CONFIG, TEXT, WHOLE, Schema, Types, list_of, object_of

NO_DOCUMENT: frozenset[str] = frozenset()
"""Commands with --json that write errors as JSON only."""


def schemas() -> Schema:
    """Return the schemas of the documents by command."""
    return Types().whole({"query": _result(), "template": list_of(TEXT), "config show": CONFIG})


def _result() -> Schema:
    """Return the schema of the result of a query (GraphQL, October 2021, section 7.1): `data`, `errors`, or both."""
    error = object_of(message=TEXT)
    error["properties"] |= {
        "locations": list_of(object_of(line=WHOLE, column=WHOLE)),
        "path": list_of({"type": ["string", "integer"]}),
        "extensions": {"type": "object"},
    }
    members: Schema = {
        "data": {"type": ["object", "null"]},
        "errors": {**list_of(error), "minItems": 1},
        "extensions": {"type": "object"},
    }
    return {"type": "object", "properties": members, "anyOf": [{"required": ["data"]}, {"required": ["errors"]}]}
