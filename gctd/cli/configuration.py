"""`gctd config`: the settings."""

from __future__ import annotations

import click

from gctd.cli.invocation import begin
from gctd.cli.options import Sources, examples, output_options, setting_options
from gctd.cli.output import Column, Output
from gctd.client.errors import ExitCode


@click.group()
def config() -> None:
    """Show the settings and where each comes from."""


@config.command(
    "show",
    epilog=examples(
        "gctd config show",
        "gctd config show --config /etc/gctd.yaml",
        "gctd config show --json | jq '.[] | select(.origin != \"default\")'",
    ),
)
@setting_options()
@output_options
@click.pass_context
def show(ctx: click.Context, *, sources: Sources, output: Output) -> int:
    """Show each setting's value and its source: environment, file or default. Flags come before all of them.

    Secrets are masked.
    """
    begin(ctx, output)
    shown = sources.load().shown
    if output.json:
        output.document([{"key": one.key, "value": one.value, "origin": one.origin} for one in shown])
    else:
        columns = [Column("KEY", "id"), Column("VALUE", "id"), Column("ORIGIN")]
        output.table(columns, [[one.key, _text(one.value), one.origin] for one in shown])
    return ExitCode.OK


def _text(value: object) -> str:
    """A value as it is written in the environment."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
