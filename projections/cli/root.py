"""The program `projections`: its commands, loaded when they are called, its exit codes, and how it fails."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from enum import IntEnum
from http import HTTPStatus
from importlib import import_module
from types import FrameType

import click

from projections.cli.output import Output


class ExitCode(IntEnum):
    """What the program ends with."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    UNAVAILABLE = 6
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "failed",
    ExitCode.USAGE: "usage: the command line is wrong",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.CONFLICT: "conflict: streams differ from their declarations, a projection cannot go on, a schema is dirty",
    ExitCode.UNAVAILABLE: "unavailable: the broker or the database; try again later",
    ExitCode.INTERRUPTED: "interrupted (SIGINT)",
    ExitCode.OUTPUT_CLOSED: "nobody reads the output any more (SIGPIPE)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}
_OF_STATUS = {
    HTTPStatus.BAD_REQUEST: ExitCode.USAGE,
    HTTPStatus.UNPROCESSABLE_ENTITY: ExitCode.USAGE,
    HTTPStatus.UNAUTHORIZED: ExitCode.NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: ExitCode.NOT_FOUND,
    HTTPStatus.CONFLICT: ExitCode.CONFLICT,
    HTTPStatus.SERVICE_UNAVAILABLE: ExitCode.UNAVAILABLE,
}
_HINTS = {
    ExitCode.UNAVAILABLE: "is it running? say where it is with --nats-url and --database (GCTD_NATS_URL, GCTD_DATABASE_URL)"
}

COMMANDS = {
    "status": ("projections.cli.status", "Show how far each projection has come, and whether it can go on."),
    "events": ("projections.cli.events", "Search the log and print events; follow it."),
    "streams": ("projections.cli.streams", "Compare streams and consumers with their declarations; bring them there."),
    "migrate": ("projections.cli.migrate", "Apply and take back migrations of a read model's schema."),
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
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in _MEANINGS.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    del param
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom wanted

        click.echo(f"projections {version('gctd')}")
        ctx.exit()


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  projections status                                     how far the read models are
  projections events --type TaskFailed --json            what failed, for a program to read
  projections streams plan                               what differs from streams.yaml

\b
Every command has --help with examples. Data goes to standard output, everything else to standard error.""",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version and exit.")
def projections() -> None:
    """Look at read models and at the event log that they are made from."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (None: those of the process) and give its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    if instruction := os.environ.get("_PROJECTIONS_COMPLETE"):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - a run of its own kind

        return shell_complete(projections, {}, "projections", "_PROJECTIONS_COMPLETE", instruction)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.OUTPUT_CLOSED
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
    return code


def _invoke(arguments: list[str]) -> int:
    given = set(arguments)
    output = Output(json="--json" in given, verbose=not given.isdisjoint({"--verbose", "-v"}), no_color="--no-color" in given)
    what = next((argument for argument in arguments if argument in COMMANDS), "projections")
    try:
        with projections.make_context("projections", arguments) as ctx:
            code = projections.invoke(ctx)
        return code if isinstance(code, int) else ExitCode.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "projections"
        output.error(path, error.format_message(), code="usage", hint=f"{path} --help")
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        output.error(what, "interrupted", code="interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last place to say anything
        if output.verbose:
            traceback.print_exc()
        return _report(output, what, error)


def _report(output: Output, what: str, error: Exception) -> int:
    status = getattr(error, "status", None)
    if isinstance(status, HTTPStatus):
        code = _OF_STATUS.get(status, ExitCode.FAILURE)
        output.error(what, str(error), code=code.name.lower(), hint=_HINTS.get(code))
        return code
    hint = "--verbose shows where it happened"
    output.error(what, f"internal error, a defect of the program: {error!r}", code="failure", hint=hint)
    return ExitCode.FAILURE


def _terminate(number: int, frame: FrameType | None) -> None:
    del number, frame
    sys.exit(ExitCode.TERMINATED)
