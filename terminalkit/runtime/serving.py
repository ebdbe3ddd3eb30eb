"""Programs that serve, run from a command line: their log, their end, and how they say where they listen."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from terminalkit.exits import ExitCode
from terminalkit.output import Output

if TYPE_CHECKING:
    from httpkit.server.serving import ListenAddress

ready_option = click.option(
    "--ready-fd", type=click.IntRange(min=1), help="Write the address to this open file, too, and close it, when ready."
)
"""Gives a command the number of an open file, `ready_fd`, for `announce`; None where it is not named."""


class Logged(Protocol):
    """The settings that say how a program logs."""

    @property
    def log_level(self) -> Literal["debug", "info", "warning", "error"]: ...
    @property
    def log_format(self) -> Literal["auto", "json", "text"]: ...


def run_program(program: Coroutine[Any, Any, None], settings: Logged) -> int:
    """Run a program that serves, with its log on standard error, until it has ended in order."""
    from terminalkit import logs  # noqa: PLC0415 - as above
    from terminalkit.runtime.event_loop import run_busy  # noqa: PLC0415 - help and completion do without it

    style = settings.log_format
    logs.configure(level=settings.log_level, style=("text" if sys.stderr.isatty() else "json") if style == "auto" else style)
    run_busy(program)
    return ExitCode.OK


def announce(output: Output, ready_fd: int | None) -> Callable[[ListenAddress], None]:
    """Says where a server listens: on standard output, and to an open file, which it closes, where one is given."""

    def on_ready(address: ListenAddress) -> None:
        # What a program has when it is ready it keeps: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        output.line(f"listening on {address.url}")
        if ready_fd is not None:
            with os.fdopen(ready_fd, "w", encoding="ascii") as file:
                file.write(f"{address.url}\n")

    return on_ready
