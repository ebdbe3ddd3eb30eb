"""The JSON Schemas of the documents that `gctd ... --json` writes: docs/reference/json-documents.json.

`python scripts/json_schemas.py` writes the file. It refuses to drop a field: within a major version, fields are only added.
Documents of the API have the schema of the API's description. tests/project/test_json_schemas.py compares the file with the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gctd.http.api import TABLE
from httpkit.edge import Edge
from httpkit.messages.openapi import document
from httpkit.operation import Operation

FILE = Path(__file__).parents[1] / "docs" / "reference" / "json-documents.json"

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "required": list(members), "properties": members}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


_TOKEN = _object(
    **dict.fromkeys(("id", "name", "scope", "state", "created_at", "expires_at"), _TEXT),
    used_at=_or_null(_TEXT),
    revoked_at=_or_null(_TEXT),
    sessions=_WHOLE,
)
_EXPORTED = _object(task=_TEXT, format=_TEXT, file=_TEXT, size=_WHOLE)

OF_THE_API = {
    "repo add": "GET /api/repos/status",
    "repo show": "GET /api/repos/status",
    "repo list": "GET /api/repos",
    "repo history": "GET /api/repos/{id}/history",
    "repo diff": "GET /api/repos/{id}/diff",
    "repo config get": "GET /api/repo-config",
    "repo config set": "GET /api/repo-config",
    "repo check-updates": "POST /api/repos/check-updates",
    "task list": "GET /api/tasks",
    "task show": "GET /api/tasks/{id}",
    "task watch": "GET /api/tasks/{id}",
    "task result": "GET /api/tasks/{id}/result",
    "task attempts": "GET /api/tasks/{id}/attempts",
    "worker list": "GET /api/workers",
}
"""Commands whose document is an answer of the API; of `task watch` it is each line."""

NO_DOCUMENT = {
    *(
        "repo rm",
        "repo config rm",
        "task cancel",
        "task delete",
        "task hide-all",
        "worker pause",
        "worker unpause",
        "token revoke",
    ),
    "check",  # its form is the report's: see `gctd check --help`
}
"""Commands with --json that write errors as JSON only, or a document of another kind."""


def schemas() -> Schema:
    """Return the schemas of all documents by command, with the shared parts in `$defs`."""
    edge = Edge(title="", version="")
    described = document([Operation(route, None, edge) for route in TABLE], edge)

    def answer(operation: str) -> Schema:
        method, path = operation.split()
        answers = described["paths"][path][method.lower()]["responses"]
        first = next(status for status in sorted(answers) if status.startswith("2"))
        schema: Schema = answers[first]["content"]["application/json"]["schema"]
        return schema

    task, analysis = answer("GET /api/tasks/{id}"), answer("GET /api/tasks/{id}/result")
    scheduled = _object(repo_url=_TEXT, tasks=_list(task), analyses=_list(analysis))
    finding = _object(check=_TEXT, status={"enum": ["ok", "warn", "fail", "unknown"]}, detail=_TEXT, fix=_TEXT)
    documents = {
        **{command: answer(operation) for command, operation in OF_THE_API.items()},
        **dict.fromkeys(("repo analyze", "repo rescore", "coverage upload"), scheduled),
        **dict.fromkeys(("repo export", "task export"), _EXPORTED),
        "task retry": _list(task),
        "task log": _object(attempt=_WHOLE, log=_TEXT),
        "gate": _list(answer("GET /api/repos/{id}/gate")),
        "token create": _object(**_TOKEN["properties"], token=_TEXT),
        "token list": _list(_TOKEN),
        "config show": _list(_object(key=_TEXT, value={}, origin=_TEXT)),
        "doctor": _list(finding),
    }
    parts = {name: part for name, part in described["components"]["schemas"].items() if _is_used(name, described, documents)}
    whole: Schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "documents": documents, "$defs": parts}
    opened: Schema = _opened(whole)
    return opened


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that a schema had and has no more."""
    if not isinstance(before, Mapping):
        return
    there = after if isinstance(after, Mapping) else {}
    for key, value in before.items():
        here = f"{path}/{key}"
        if key not in there and path.rpartition("/")[2] in {"properties", "documents"}:
            yield here
        else:
            yield from lost(value, there.get(key), here)


def _is_used(name: str, described: Schema, documents: Mapping[str, Schema]) -> bool:
    """Whether a part is in a document, also through other parts."""
    seen: set[str] = set()
    waiting = list(_references(documents))
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += _references(described["components"]["schemas"][one])
    return name in seen


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _opened(node: Any) -> Any:
    """Return the schema with references into `$defs`. Further members are allowed, because versions add members."""
    if isinstance(node, dict):
        return {
            key: value.replace("#/components/schemas/", "#/$defs/") if key == "$ref" else _opened(value)
            for key, value in node.items()
            if not (key == "additionalProperties" and value is False)
        }
    return [_opened(value) for value in node] if isinstance(node, list) else node


def text() -> str:
    """Return the text of the file."""
    return json.dumps(schemas(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    gone = list(lost(json.loads(FILE.read_text(encoding="utf-8")), schemas())) if FILE.exists() else []
    if gone and "--major" not in sys.argv:
        sys.exit(f"fields have gone, which only a major version may do (--major): {', '.join(gone)}")
    FILE.write_text(text(), encoding="utf-8")
