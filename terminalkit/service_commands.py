"""The commands that the programs of all services have: `serve`, and `config show`."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

import attrs
import click

from terminalkit.config.flags import SettingFlags, SettingSources, show_settings
from terminalkit.coroutine import examples, output_options
from terminalkit.display.output import Output
from terminalkit.failure import ExitCode, Failure, command_name
from terminalkit.invocation import begin_invocation

if TYPE_CHECKING:
    from httpkit.server.serving import ListenAddress
    from terminalkit.config.loading import LoadedSettings

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
    from terminalkit.coroutine import run_busy  # noqa: PLC0415 - help and completion do without it

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


_PATIENCE = 3.0
_PORT = 4222


def check_default_broker(loaded: LoadedSettings[Any], what: str, *, up: str, looked: bool = False) -> None:
    """Raise Failure if the address of NATS is the default, and no server listens there.

    `what` is the command of the user, `up` the command that starts everything. `looked`: the running system of the user was
    looked for. A chosen address is not checked: the program itself waits for its server.
    """
    if loaded.origins.get("nats_url") != "default":
        return
    url: str = loaded.values.nats_url
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or _PORT), timeout=_PATIENCE).close()
    except OSError:
        hint = f"run '{up}', or set {loaded.prefix}_NATS_URL"
        also = ", and no system of yours with its address runs on this machine" if looked else ""
        raise Failure(what, f"no NATS at {url}{also}", exit_code=ExitCode.UNAVAILABLE, hint=hint) from None


C = TypeVar("C")
ANNOUNCED = ("nats_url", "monitoring_url", "database_url", "cache_directory", "replicas", "event_store_max_bytes")
"""Settings of a service that its commands need, besides its address."""

Serve = Callable[..., Coroutine[Any, Any, None]]
"""`serve(settings, *, on_ready)`: serves until a signal comes, and calls `on_ready` with the address."""


def serve_command(
    flags: SettingFlags[C],
    serve: Callable[[], Serve],
    *,
    settings: Sequence[str],
    does: str,
    token: str,
    shows: Sequence[str],
    up: str | None = None,
    effective: Callable[[Any], Mapping[str, Any]] = lambda _: {},
) -> click.Command:
    """The command that runs a service, with flags for these `settings`.

    `serve` gives the coroutine function; it may import modules that are slow. `does` completes the sentence "Run ...".
    `token` is the variable of the token, `shows` are the examples in the help. `up` is the command that starts everything, as
    advice if no broker is at the default address. While the service answers, it is announced_system to the commands of the user
    (`terminalkit.config.running`); `effective` gives the settings whose values follow from others.
    """

    @click.command(
        "serve",
        epilog=examples(*shows),
        help=f"""Run {does}.

One line on standard output has its address, once it answers requests. SIGINT and SIGTERM end it in order; a second one
at once. A token is set with {token} or in the settings file.""",
    )
    @flags.options(*settings)
    @ready_option
    @click.pass_context
    def run(ctx: click.Context, *, sources: SettingSources[Any], ready_fd: int | None) -> int:
        output = begin_invocation(ctx).output
        loaded = sources.load()
        values = loaded.values
        if up is not None:
            check_default_broker(loaded, command_name(ctx), up=up)
        said: Callable[[ListenAddress], None] = announce(output, ready_fd)
        with ExitStack() as stack:

            def on_ready(address: ListenAddress) -> None:
                from terminalkit.config.running import announced_system  # noqa: PLC0415 - slow, and help does without it

                source = sources.of.source()
                variables = source.variables(attrs.evolve(values, **effective(values)), ANNOUNCED)
                stack.enter_context(announced_system(ctx.command_path, {**variables, f"{source.prefix}_URL": address.url}))
                said(address)

            return run_program(serve()(values, on_ready=on_ready), values)

    return run


def config_command(flags: SettingFlags[C], program: str, *, shows: Sequence[str] = ()) -> click.Group:
    """The group of commands that show the settings of a program; `shows` are more examples."""

    @click.group("config", help="Show the settings and where each comes from.")
    def config() -> None:
        """It only has commands."""

    @config.command(
        "show",
        epilog=examples(f"{program} config show", f"{program} config show --json", *shows),
        help="""Show each setting's value and its source: environment, file or default. Flags come before all of them.

Secrets are masked.""",
    )
    @flags.options()
    @output_options
    @click.pass_context
    def show(ctx: click.Context, *, sources: SettingSources[Any], output: Output) -> int:
        begin_invocation(ctx, output)
        show_settings(output, sources.load(running=("url",)).show())
        return ExitCode.OK

    return config
