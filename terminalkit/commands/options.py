"""Options that commands of every program have, and the end of their help."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from terminalkit.display.output import Output

Function = Callable[..., Any]


class _Duration(click.ParamType[float]):
    """A duration as Go writes it, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from terminalkit.config import durations  # noqa: PLC0415 - only for a given value

        try:
            seconds = durations.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0.001:
            self.fail("must be 1ms or more", param, ctx)
        return seconds


DURATION = _Duration()


class Choice(click.Choice[str]):
    """One of several words. The error for another word suggests the closest one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        from httpkit.errors import suggestion  # noqa: PLC0415 - only for a wrong value

        del ctx
        return f"{value!r} is not one of: {', '.join(self.choices)}{suggestion(str(value), self.choices)}"


def examples(*lines: str) -> str:
    """The end of a command's help: examples, a line each."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_options(function: Function) -> Function:
    """Give a command the options for its output; it gets an `output`."""

    @click.option("--json", "as_json", is_flag=True, help="Write JSON; errors too, on standard error.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress and no notes.")
    @click.option("-v", "--verbose", is_flag=True, help="Print requests, and the tracebacks of errors, on standard error.")
    @click.option("--no-color", is_flag=True, help="No colour, whatever FORCE_COLOR says.")
    @wraps(function)
    def with_output(*args: Any, as_json: bool, quiet: bool, verbose: bool, no_color: bool, **kwargs: Any) -> Any:
        output = Output(json=as_json, quiet=quiet, verbose=verbose, no_color=no_color)
        return function(*args, output=output, **kwargs)

    return with_output
