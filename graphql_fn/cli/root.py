"""The program `graphql-fn`: its commands and its help. Without the name of a command it evaluates a query."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from terminalkit import Command, ExitCode, Program, completion_variable

PROGRAM = Program(
    name="graphql-fn",
    summary="Evaluate a GraphQL query, or serve the function that does: graphql-fn '{ hello }'.",
    epilog="""\b
Examples:
  graphql-fn '{ hello }'                   evaluate a query
  echo '{ hello }' | graphql-fn            the same, from standard input
  graphql-fn serve --port 8080             answer queries at /function/graphql

\b
Settings come from flags, then GRAPHQL_* in the environment, then .graphql-fn.yaml: see `graphql-fn config show`.""",
    commands={
        "query": Command("graphql_fn.cli.evaluate", "Evaluate a query; may be left out."),
        "serve": Command("graphql_fn.cli.service", "Run the gateway."),
        "template": Command("graphql_fn.cli.template", "Write a folder that deploys the function on OpenFaaS."),
        "config": Command("graphql_fn.cli.service", "Show the settings and where each comes from."),
        "completion": Command("graphql_fn.cli.completion", "Print the script that lets SHELL complete commands and options."),
    },
    meanings={ExitCode.FAILURE: "failed, or the result has errors"},
)

_GENERAL = frozenset({"-h", "--help", "--version"})
_WORD = re.compile("[a-z]+(-[a-z]+)*")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (None: the arguments of the process) and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    return PROGRAM.run(
        given if os.environ.get(completion_variable(PROGRAM.name)) else with_command(given, piped=not sys.stdin.isatty())
    )


def with_command(arguments: Sequence[str], *, piped: bool) -> list[str]:
    """Return the arguments with `query` before them if they begin with a query, or are missing and input is `piped`.

    A bare word cannot be a query, so it is a command or a misspelt one.
    """
    first = arguments[0] if arguments else None
    if first in _GENERAL or (not piped if first is None else _WORD.fullmatch(first)):
        return list(arguments)
    return ["query", *arguments]
