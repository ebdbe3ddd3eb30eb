"""Commands: their examples, options, and the wrapper that gives them an invocation."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import click

from terminalkit.display.output import Output
from terminalkit.runtime.coroutine import run
from terminalkit.runtime.invocation import begin_invocation

Function = Callable[..., Any]


class _Duration(click.ParamType[float]):
    """A duration as Go writes it, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from terminalkit.config import fields  # noqa: PLC0415 - only for a given value

        try:
            seconds = fields.parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0.001:
            self.fail("must be 1ms or more", param, ctx)
        return seconds


DURATION = _Duration()


class Choice(click.Choice[str]):
    """One of several words. The error for another word suggests the closest one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The text of a refusal, with the choice that is nearest."""
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


def command(
    *, not_found: str | None = None, logs: bool = False, busy: bool = False, time_limit: str = "--timeout"
) -> Callable[[Callable[..., Coroutine[Any, Any, int]]], Callable[..., int]]:
    """Make the function of a command out of `async def f(invocation, ...) -> exit code`.

    It has `--timeout`, `--json`, `--quiet`, `--verbose` and `--no-color`. `not_found`: advice if the thing is not found. `{name}`
    in it is replaced by the argument of that name. `logs`: the logs of the packages that it calls go to standard error with
    `--verbose`, and are dropped without. `busy`: it reads much, as a whole log. `time_limit`: the name of the option `--timeout`
    if the command has another use for that name.
    """

    def decorate(work: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
        @click.option(
            time_limit, "give_up_after", type=DURATION, help="Give up after this time, as in 90s or 10m.  [default: never]"
        )
        @output_options
        @click.pass_context
        @wraps(work)
        def run_command(ctx: click.Context, /, *, give_up_after: float | None, output: Output, **arguments: Any) -> int:
            given = {name: shlex.quote(value) if isinstance(value, str) else "" for name, value in arguments.items()}
            invocation = begin_invocation(ctx, output, not_found=None if not_found is None else not_found.format(**given))
            if logs:
                _log_to_stderr(verbose=output.verbose)
            return run(work(invocation, **arguments), timeout=give_up_after, busy=busy)

        return run_command

    return decorate


def _log_to_stderr(*, verbose: bool) -> None:
    import logging  # noqa: PLC0415 - slow

    import structlog  # noqa: PLC0415 - slow

    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.CRITICAL),
    )
    if not verbose:
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns when a server closes a connection that was made TLS's
