"""`graphql-fn config`: the settings."""

from __future__ import annotations

import click

from graphql_fn.cli.options import Sources, setting_options
from terminalkit.config.flags import show_settings
from terminalkit.exits import ExitCode
from terminalkit.options import examples, output_options
from terminalkit.output import Output
from terminalkit.runtime.invocation import begin


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
