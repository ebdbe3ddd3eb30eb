"""`gctd serve`: the control plane; and what the programs that serve have in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click

from gctd.cli.invocation import begin
from gctd.cli.options import Sources, examples, setting_options
from gctd.client.errors import ExitCode

if TYPE_CHECKING:
    from gctd.settings import Settings
    from httpkit.server import Address

SHARED_SETTINGS = ("nats_url", "replicas", "ack_wait", "presence_ttl", "log_level", "log_format")
"""Settings that are the same for every program of one system, or that each of them has."""


@click.command(
    epilog=examples(
        "gctd serve --nats-url nats://127.0.0.1:4222",
        "gctd serve --host 0.0.0.0 --port 80 --allowed-hosts gctd.example.com",
        "GCTD_AUTH_TOKEN=... gctd serve --config /etc/gctd.yaml",
    )
)
@setting_options(
    *("host", "port", "allowed_hosts", "database_url", "max_lag"),
    *("worker_engine", "max_attempts", "queue_timeout", "allow_local", "allow_ssh", "private_hosts"),
    *("event_store_max_bytes", *SHARED_SETTINGS),
)
@click.option(
    "--ready-fd", type=click.IntRange(min=1), help="Write the address to this open file, too, and close it, when ready."
)
@click.pass_context
def serve(ctx: click.Context, *, sources: Sources, ready_fd: int | None) -> int:
    """Run the control plane: API, event stream and web page.

    One line on standard output says where it listens, once it answers requests. SIGINT and SIGTERM end it in order; a second one
    at once. A token is set with GCTD_AUTH_TOKEN or in the settings file.
    """
    output = begin(ctx).output
    settings = sources.load().settings
    from gctd.serve import serve as run_control_plane  # noqa: PLC0415 - help and completion do without it

    def on_ready(address: Address) -> None:
        output.line(f"listening on {address.url}")
        if ready_fd is not None:
            with os.fdopen(ready_fd, "w", encoding="ascii") as file:
                file.write(f"{address.url}\n")

    return run_program(run_control_plane(settings, on_ready=on_ready), settings)


def run_program(program: Coroutine[Any, Any, None], settings: Settings) -> int:
    """Run a program that serves, with its log on standard error, until it has ended in order."""
    from httpkit import logs, server  # noqa: PLC0415 - help and completion do without it

    style = settings.log_format
    logs.configure(level=settings.log_level, style=("text" if sys.stderr.isatty() else "json") if style == "auto" else style)
    server.run(program)
    return ExitCode.OK
