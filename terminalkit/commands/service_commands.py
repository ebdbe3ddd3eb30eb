"""The commands that the programs of all services have: `serve`, and `config show`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from terminalkit.commands.command import examples, output_options
from terminalkit.config.flags import SettingFlags, SettingSources, show_settings
from terminalkit.display.output import Output
from terminalkit.exits import ExitCode
from terminalkit.failure import command_name
from terminalkit.runtime.default_broker import check_default_broker
from terminalkit.runtime.invocation import begin_invocation
from terminalkit.runtime.serving import announce, ready_option, run_program

if TYPE_CHECKING:
    from httpkit.server.serving import ListenAddress

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
    advice if no broker is at the default address. While the service answers, it is announced to the commands of the user
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
