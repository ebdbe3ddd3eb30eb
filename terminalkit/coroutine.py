"""Commands that run as coroutines: their options, signals that end them, the event loop of a program that serves, completion."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import click

from terminalkit.display.output import Output
from terminalkit.display.table import duration
from terminalkit.failure import ExitCode, OutOfTime, Stopped
from terminalkit.invocation import begin_invocation
from terminalkit.program import ASKING, completion_variable

T = TypeVar("T")

_COLLECT = (10_000, 20, 20)
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""Parameters of glibc's mallopt (malloc.h)."""
_LARGE = 128 * 1024


def run_busy(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's coroutine on uvloop.

    Requests and commits are freed by reference counting. The cycle collector finds nothing in them and costs time, so it runs ten
    times less often than by default.
    """
    import uvloop  # noqa: PLC0415 - slow, and most commands do without it

    gc.set_threshold(*_COLLECT)
    _give_memory_back()
    return uvloop.run(main)


def _give_memory_back() -> None:
    """Make glibc return large free blocks to the system, and make all threads share two heaps.

    Otherwise each thread keeps a heap as large as it ever was, and pieces up to 32 MiB stay in it once one of that
    size was freed.
    """
    import ctypes  # noqa: PLC0415 - as above

    with suppress(OSError, AttributeError):  # another C library: it has its own ways
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 2)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def lazily(place: str) -> Callable[[], Any]:
    """Return a function that gives the object in a place, `module:NAME`."""
    module, _, name = place.partition(":")
    return lambda: getattr(import_module(module), name)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(work: Coroutine[Any, Any, int], *, timeout: float | None, busy: bool = False) -> int:
    """Run the coroutine to its end and return its exit code; `busy`: with the settings for work that reads much.

    Raises Stopped when SIGINT or SIGTERM came, OutOfTime after `timeout` seconds (None: no limit).
    """
    if not busy:
        return asyncio.run(_supervised(work, timeout))

    return run_busy(_supervised(work, timeout))


async def _supervised(work: Coroutine[Any, Any, int], seconds: float | None) -> int:
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(number: int) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            task.cancel()
            await asyncio.wait([task])
        return task.result()
    except asyncio.CancelledError:
        if received:
            raise Stopped(received[0]) from None
        raise OutOfTime(f"not done within {duration(seconds or 0)}") from None
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


Function = Callable[..., Any]


class _Duration(click.ParamType[float]):
    """A duration as Go writes it, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from terminalkit.config import loading  # noqa: PLC0415 - only for a given value

        try:
            seconds = loading.parse_duration(value)
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


PATIENCE = 0.3
"""Seconds that a server has to answer: a shell that hangs at each tab is worse than one that offers nothing."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def completion_command(program: str, what: str) -> click.Command:
    """The command that prints the script by which a shell completes `what`: commands, options, and values by name."""

    @click.command(
        "completion",
        help=f"Print the script that lets SHELL complete {what}.",
        epilog=examples(
            f'eval "$({program} completion bash)"',
            f"{program} completion zsh > ~/.zfunc/_{program}",
            f"{program} completion fish > ~/.config/fish/completions/{program}.fish",
        ),
    )
    @click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
    @click.pass_context
    def completion(ctx: click.Context, shell: str) -> int:
        from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

        output = begin_invocation(ctx).output
        kind = get_completion_class(shell)
        assert kind is not None, "click knows these shells"
        output.raw(kind(ctx.find_root().command, {}, program, completion_variable(program)).source() + "\n")
        return ExitCode.OK

    return completion


def completes(client: Callable[[], AbstractAsyncContextManager[T]], values: Callable[[T], Awaitable[Iterable[str]]]) -> Complete:
    """Completion of an argument with the values that a client gives, or with no values if it fails or takes too long.

    `client` imports slow modules and reads the settings. `values` asks the server, within a time limit. It runs in a separate
    thread, because the look-up of a host's name cannot be cut short otherwise.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del ctx, param
        choices: list[str] = []

        async def within_time() -> None:
            async with asyncio.timeout(PATIENCE), prepared as asked:
                choices.extend(await values(asked))

        def in_thread() -> None:
            with contextlib.suppress(Exception):  # the command itself will report the error
                asyncio.run(within_time())

        try:
            prepared = client()
        except Exception:  # noqa: BLE001 - as above
            return []
        asking = threading.Thread(target=in_thread, name=ASKING, daemon=True)
        asking.start()
        asking.join(PATIENCE)
        return sorted({value for value in choices.copy() if value.startswith(incomplete)})

    return complete
