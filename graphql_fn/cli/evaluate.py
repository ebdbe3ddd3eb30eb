"""`graphql-fn [query]`: evaluate a query here, without a server."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import click

from graphql_fn.cli.options import Sources, setting_options
from terminalkit import ExitCode, Invocation, command, examples

if TYPE_CHECKING:
    from graphql_fn.core.evaluator import Evaluator


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
    """Evaluate QUERY, or standard input, and print the result as JSON. The exit code is 1 if it has errors.

    Under OpenFaaS's classic watchdog (Http_Method is set) the environment describes the request, and the exit code is 0: the
    watchdog drops the result of any other.
    """
    from graphql_fn.core.evaluator import Evaluator  # noqa: PLC0415 - slow
    from graphql_fn.core.hello import HELLO  # noqa: PLC0415 - slow
    from graphql_fn.core.request import decode, from_members, from_text, text_of  # noqa: PLC0415 - slow

    settings = sources.load().values
    evaluator = Evaluator(HELLO, settings.limits, introspection=settings.introspection, suggestions=settings.suggestions)
    if "Http_Method" in os.environ:
        sys.stdout.buffer.write(await _answered(evaluator))
        return ExitCode.OK
    given = from_text(text_of(sys.stdin.buffer.read()) if text == "-" else text)
    values = None if variables is None else decode(variables, "--variables")
    result = await evaluator.evaluate(from_members({"query": given.query, "variables": values, "operationName": operation}))
    invocation.output.document(result.document)
    return ExitCode.FAILURE if result.failed else ExitCode.OK


async def _answered(evaluator: Evaluator) -> bytes:
    """The body of the answer to the request that the watchdog passes (https://docs.openfaas.com/architecture/watchdog)."""
    from graphql_fn.core.over_http import HttpRequest, answer  # noqa: PLC0415 - slow

    given = os.environ
    request = HttpRequest(
        method=given["Http_Method"],
        parameters=dict(parse_qsl(given.get("Http_Query", ""))),
        content_type=given.get("Http_Content_Type") or given.get("Http_ContentType"),
        body=sys.stdin.buffer.read(),
        request_id=given.get("Http_X_Call_Id"),
    )
    return (await answer(evaluator, request)).body
