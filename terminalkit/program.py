"""A program: its commands, loaded when they are called, its help with the exit codes, and how it is run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import FrameType
from typing import Any

import attrs
import click

from terminalkit.failure import MEANINGS, ExitCode, Explainer, Stopped
from terminalkit.invocation import Invocation, output_for


@attrs.frozen
class Command:
    """A command of a program, and its line in the help.

    `module` is the module that has the command under the command's own name: it may be slow to import. Or it is the command.
    """

    module: str | click.Command
    summary: str

    def load(self, name: str) -> click.Command:
        """The command, which is called `name`."""
        if isinstance(self.module, click.Command):
            return self.module
        command: click.Command = getattr(import_module(self.module), name.replace("-", "_"))
        return command


@attrs.frozen(kw_only=True, slots=False)
class Program:
    """A program `name`, of the `version` of the distribution that installs it, unless another is given.

    `summary` and `epilog` (examples, sources of settings) are parts of its help. `meanings` and `hints` are the program's own
    words for the meaning of some exit codes and for the advice. `asking` is the advice for a failed request to its server.
    """

    name: str
    version: str | None = None
    summary: str
    epilog: str
    commands: Mapping[str, Command]
    meanings: Mapping[ExitCode, str] = attrs.field(factory=dict)
    hints: Mapping[ExitCode, str] = attrs.field(factory=dict)
    asking: Mapping[ExitCode, str] = attrs.field(factory=dict)

    @cached_property
    def exit_codes(self) -> Mapping[ExitCode, str]:
        """The meaning of each exit code."""
        return {**MEANINGS, **self.meanings}

    @cached_property
    def explainer(self) -> Explainer:
        """Makes the failures of the program's commands."""
        return Explainer(program=self.name, hints=self.hints, asking=self.asking)

    @cached_property
    def group(self) -> click.Group:
        """The program as click sees it."""
        group = _Commands(
            self,
            name=self.name,
            help=self.summary,
            epilog=f"{self.epilog}\n\n\b\nEvery command has --help with examples. "
            "Data goes to standard output, everything else to standard error.",
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        group.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=self._version,
                help="Print the version and exit.",
            )
        )
        return group

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run the program with these arguments (None: the arguments of the process) and return its exit code."""
        arguments = list(sys.argv[1:] if argv is None else argv)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
        if instruction := os.environ.get(completion_variable(self.name)):
            return self._complete(instruction)
        signal.signal(signal.SIGTERM, _terminate)
        invocation = Invocation(output_for(arguments), self.explainer)
        return invocation.end(lambda: self._invoke(arguments, invocation))

    def _invoke(self, arguments: list[str], invocation: Invocation) -> int:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # `terminalkit.entry` has set it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self.group.make_context(self.name, arguments, obj=invocation) as ctx:
                code = self.group.invoke(ctx)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return ExitCode.USAGE
        except click.exceptions.Exit as exit_:
            return exit_.exit_code
        return code if isinstance(code, int) else ExitCode.OK

    def _complete(self, instruction: str) -> int:
        from click.shell_completion import shell_complete  # noqa: PLC0415 - a special kind of run

        code = shell_complete(self.group, {}, self.name, completion_variable(self.name), instruction)
        # A question that was not answered in time must not hold up the shell.
        if any(thread.name == ASKING for thread in threading.enumerate()):
            sys.stdout.flush()
            os._exit(code)
        return code

    def _version(self, ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
        del param
        if value and not ctx.resilient_parsing:
            click.echo(f"{self.name} {self.version or _installed_version(self.name)}")
            ctx.exit()


def _installed_version(program: str) -> str:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom wanted

    versions = [script.dist.version for script in entry_points(group="console_scripts", name=program) if script.dist is not None]
    return versions[0] if versions else "(not installed)"


ASKING = "completion"
"""The name of the threads that ask a server for values."""


def completion_variable(program: str) -> str:
    """The variable that a program's completion script sets, to ask the program for the next words."""
    return f"_{program.upper().replace('-', '_')}_COMPLETE"


class _Commands(click.Group):
    """Commands that are imported when they are called."""

    def __init__(self, program: Program, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._program = program

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._program.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        place = self._program.commands.get(cmd_name)
        if place is None:
            return None
        return place.load(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click knows no commands that are not imported
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self._program.commands, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self._program.commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in self._program.exit_codes.items()])


def _terminate(number: int, frame: FrameType | None) -> None:
    del frame
    raise Stopped(number)
