"""The program `gctd`: its commands, loaded when they are called, and its exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

import click

from gctd.cli.failure import EXIT_CODES, Stopped
from gctd.cli.invocation import COMPLETE_VARIABLE, Invocation, output_for
from gctd.client.errors import ExitCode

COMMANDS = {
    "serve": ("gctd.cli.service", "Run the control plane: API, event stream and web page."),
    "worker": ("gctd.cli.workers", "Run a worker; or list, pause and unpause the workers that run."),
    "repo": ("gctd.cli.repos", "Register repositories, show them, have them analysed."),
    "task": ("gctd.cli.tasks", "List, show, watch and delete tasks, and show their results."),
    "config": ("gctd.cli.configuration", "Show the settings and where each comes from."),
    "completion": (
        "gctd.cli.completion",
        "Print the script that lets SHELL complete commands, options, repositories, tasks and workers.",
    ),
}
"""Each command with the module that has it and the line that stands in the help. Those modules are slow to import."""


class _Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    del param
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom wanted

        click.echo(f"gctd {version('gctd')}")
        ctx.exit()


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  gctd repo add https://github.com/owner/name       register a repository, find its projects
  gctd repo analyze https://github.com/owner/name   score its functions, show the worst
  gctd task list --status failed --json             what went wrong, for a program to read

\b
Every command has --help with examples. Data goes to standard output, everything else to standard error.
Settings come from flags, then GCTD_* in the environment, then .gctd.yaml: see `gctd config show`.""",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version and exit.")
def gctd() -> None:
    """Track how risky the functions of Go repositories are to change, by their CRAP score."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (None: those of the process) and give its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - a run of its own kind

        return shell_complete(gctd, {}, "gctd", COMPLETE_VARIABLE, instruction)
    signal.signal(signal.SIGTERM, _terminate)
    invocation = Invocation(output_for(arguments))
    return invocation.end(lambda: _invoke(arguments, invocation))


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    try:
        with gctd.make_context("gctd", arguments, obj=invocation) as ctx:
            code = gctd.invoke(ctx)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    return code if isinstance(code, int) else ExitCode.OK


def _terminate(number: int, frame: FrameType | None) -> None:
    del frame
    raise Stopped(number)
