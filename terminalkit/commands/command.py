"""Commands that do their work in a coroutine, with the options that all of them have."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import click

from terminalkit.commands.options import DURATION, output_options
from terminalkit.display.output import Output
from terminalkit.runtime.coroutine import run
from terminalkit.runtime.invocation import begin


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
            invocation = begin(ctx, output, not_found=None if not_found is None else not_found.format(**given))
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
