"""Documents of `gctd`."""

from __future__ import annotations

from gctd.cli.builds.checking.judge import SCHEMA
from gctd.cli.builds.checking.measure import MeasuredProject
from gctd.http.api import TABLE
from gctd.http.tasks.attempts import LogEnd, LogLines
from reference.json_documents.parts import CONFIG, NUMBER, TEXT, TOKENS, WHOLE, Schema, Types, list_of, object_of, or_null

OF_THE_API = {
    "repo add": "GET /api/repos/status",
    "repo show": "GET /api/repos/status",
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

NO_DOCUMENT = frozenset(
    {
        *("repo rm", "repo config rm", "task cancel", "task delete", "task hide-all"),
        *("worker pause", "worker unpause", "token revoke"),
    }
)
"""Commands with --json that write errors as JSON only."""


def schemas() -> Schema:
    """Return the schemas of the documents by command."""
    types = Types(TABLE)
    task, analysis = types.answer("GET /api/tasks/{id}"), types.answer("GET /api/tasks/{id}/result")
    scheduled = object_of(repo_url=TEXT, tasks=list_of(task), analyses=list_of(analysis))
    exported = object_of(task=TEXT, format=TEXT, file=TEXT, size=WHOLE)
    finding = object_of(check=TEXT, status={"enum": ["ok", "warn", "fail", "unknown"]}, detail=TEXT, fix=TEXT)
    return types.whole(
        {
            **{command: types.answer(operation) for command, operation in OF_THE_API.items()},
            **dict.fromkeys(("repo analyze", "repo rescore", "coverage upload"), scheduled),
            **dict.fromkeys(("repo export", "task export"), exported),
            "repo list": list_of(
                object_of(
                    repository=types.answer("GET /api/repos/status"),
                    analyses=types.answer("GET /api/repos"),
                )
            ),
            "task retry": list_of(task),
            "task log": object_of(attempt=WHOLE, log=TEXT),
            "task log --follow": {"anyOf": [types.of(LogLines), types.of(LogEnd)]},
            "gate": list_of(types.answer("GET /api/repos/{id}/gate")),
            "check": object_of(schema={"const": SCHEMA}, projects=list_of(_judged(types))),
            **TOKENS,
            "config show": CONFIG,
            "doctor": list_of(finding),
        }
    )


def _judged(types: Types) -> Schema:
    """Return the schema of a project in a report of `gctd check`: the judgement and its measurement."""
    check = object_of(
        name=TEXT,
        text=TEXT,
        passed={"type": ["boolean", "null"]},
        limit={"type": ["number", "boolean", "null"]},
        value=or_null(NUMBER),
    )
    function = object_of(file=TEXT, line=WHOLE, function=TEXT, before=or_null(NUMBER), crap=NUMBER, checks=list_of(TEXT))
    return object_of(
        project=TEXT,
        result={"enum": ["passed", "failed", "unknown"]},
        reason=TEXT,
        base=TEXT,
        checks=list_of(check),
        functions=list_of(function),
        fixed=list_of(object_of(file=TEXT, line=WHOLE, function=TEXT, before=or_null(NUMBER), crap=NUMBER)),
        **types.encoded_members(MeasuredProject, prefix="Check"),
    )
