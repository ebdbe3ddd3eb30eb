"""`graphql-fn config`: the settings."""

from __future__ import annotations

import click

from clikit.exits import ExitCode
from clikit.invocation import begin
from clikit.options import examples, output_options
from clikit.output import Output
from clikit.settings import show_settings
from graphql_fn.cli.options import Sources, setting_options


@click.group()
def config() -> None:
    """Show the settings and where each comes from."""


@config.command("show", epilog=examples("graphql-fn config show", "graphql-fn config show --json"))
@setting_options()
@output_options
@click.pass_context
def show(ctx: click.Context, *, sources: Sources, output: Output) -> int:
    """Show each setting's value and its source: environment, file or default. Flags come before all of them.

    Secrets are masked.
    """
    begin(ctx, output)
    show_settings(output, sources.load().show())
    return ExitCode.OK
