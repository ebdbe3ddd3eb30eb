"""Programs that serve, run from a command line: their log, their end, and the message with their address."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from terminalkit.display.output import Output
from terminalkit.exits import ExitCode

if TYPE_CHECKING:
    from httpkit.server.serving import ListenAddress

ready_option = click.option(
    "--ready-fd", type=click.IntRange(min=1), help="Also write the address to this open file when ready, and close it."
)
"""Gives a command the number of an open file, `ready_fd`, for `announce`; None if it is not named."""


PRIVATE = 0o077
"""The umask of programs that keep data: nothing for the group, nothing for others."""


class Logged(Protocol):
    """The settings of a program's log."""

    @property
    def log_level(self) -> Literal["debug", "info", "warn", "warning", "error"]: ...
    @property
    def log_format(self) -> Literal["auto", "json", "text"]: ...


def run_program(program: Coroutine[Any, Any, None], settings: Logged) -> int:
    """Run a program that serves, with its log on standard error, until it has ended in order.

    Files that it writes are readable by its own user only, with any umask.
    """
    from eventlog.support import span_export  # noqa: PLC0415 - as below
    from terminalkit import logs  # noqa: PLC0415 - as below
    from terminalkit.runtime.event_loop import run_busy  # noqa: PLC0415 - help and completion do without it

    style = settings.log_format
    logs.configure_logs(level=settings.log_level, style=("text" if sys.stderr.isatty() else "json") if style == "auto" else style)
    before = os.umask(PRIVATE)
    ctx = click.get_current_context(silent=True)
    export_rest = span_export.start(Path(sys.argv[0]).stem if ctx is None else ctx.command_path.replace(" ", "-"))
    try:
        run_busy(program)
    finally:
        export_rest()
        os.umask(before)
    return ExitCode.OK


def announce(output: Output, ready_fd: int | None) -> Callable[[ListenAddress], None]:
    """Print the address of a server: on standard output, and to an open file, which it closes, if one is given."""

    def on_ready(address: ListenAddress) -> None:
        # A program that is ready keeps its objects: the garbage collector does not need to look at them repeatedly.
        gc.collect()
        gc.freeze()
        output.line(f"listening on {address.url}")
        if ready_fd is not None:
            with os.fdopen(ready_fd, "w", encoding="ascii") as file:
                file.write(f"{address.url}\n")

    return on_ready
