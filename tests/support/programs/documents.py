"""Holds the documents that a program wrote with `--json` against the schemas that users have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

from openapi_schema_validator import OAS31Validator
from reference.json_documents import PROGRAMS

LINES = {"task watch", "task log --follow", "watch", "scan", "events"}
"""Commands with a document on each line."""


@cache
def validators(program: str) -> dict[str, OAS31Validator]:
    """The validators of the documents of a program, by command."""
    schemas = PROGRAMS[program].schemas()
    return {command: OAS31Validator({**schema, "$defs": schemas["$defs"]}) for command, schema in schemas["documents"].items()}


def misfits(program: str, arguments: Sequence[str], out: str) -> list[str]:
    """Everything that does not fit in the output of a program. Without `--json`, and if it is empty, it has no document."""
    command = " ".join(arguments)
    known = [name for name in validators(program) if command == name or command.startswith(f"{name} ")]
    if "--json" not in arguments or not out or not known:
        return []
    name = max(known, key=len)
    documents = map(json.loads, out.splitlines() if name in LINES else [out])
    return [
        f"{name}: {error.json_path}: {error.message}" for one in documents for error in validators(program)[name].iter_errors(one)
    ]
