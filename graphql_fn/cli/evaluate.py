"""`graphql-fn [query]`: evaluate a query here, without a server."""

from __future__ import annotations

import sys

import click

from graphql_fn.cli.options import Sources, setting_options
from terminalkit.command import command
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.runtime.invocation import Invocation


@click.command(
    "query",
    epilog=examples(
        "graphql-fn '{ hello }'",
        "echo '{ hello }' | graphql-fn",
        "graphql-fn 'query A { hello } query B { hello }' --operation B",
    ),
)
@click.argument("text", metavar="[QUERY]", default="-")
@click.option("--variables", metavar="JSON", help="The values of the query's variables: a JSON object.")
@click.option("--operation", metavar="NAME", help="Which operation of the query is run, if it has several.")
@setting_options("max_tokens", "max_depth", "max_aliases", "max_root_fields", "max_errors", "query_timeout")
@command(logs=True)
async def query(invocation: Invocation, *, text: str, variables: str | None, operation: str | None, sources: Sources) -> int:
    """Evaluate QUERY, or standard input, and print the result as JSON. The exit code is 1 if it has errors."""
    from graphql_fn.core.evaluator import Evaluator  # noqa: PLC0415 - slow
    from graphql_fn.core.hello import HELLO  # noqa: PLC0415 - slow
    from graphql_fn.core.request import decode, from_members, from_text, text_of  # noqa: PLC0415 - slow

    settings = sources.load().values
    evaluator = Evaluator(HELLO, settings.limits, introspection=settings.introspection, suggestions=settings.suggestions)
    given = from_text(text_of(sys.stdin.buffer.read()) if text == "-" else text)
    values = None if variables is None else decode(variables, "--variables")
    result = await evaluator.evaluate(from_members({"query": given.query, "variables": values, "operationName": operation}))
    invocation.output.document(result.document)
    return ExitCode.FAILURE if result.failed else ExitCode.OK
