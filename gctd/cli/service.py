"""`gctd serve`: the control plane; and what the programs that serve have in common."""

from __future__ import annotations

import click

from gctd.cli.options import Sources, setting_options
from terminalkit.options import examples
from terminalkit.runtime.invocation import begin
from terminalkit.runtime.serving import announce, ready_option, run_program

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
    *("host", "port", "allowed_hosts", "public_badges", "database_url", "max_lag"),
    *("worker_engine", "max_attempts", "queue_timeout", "allow_local", "allow_ssh", "private_hosts"),
    *("event_store_max_bytes", *SHARED_SETTINGS),
)
@ready_option
@click.pass_context
def serve(ctx: click.Context, *, sources: Sources, ready_fd: int | None) -> int:
    """Run the control plane: API, event stream and web page.

    One line on standard output says where it listens, once it answers requests. SIGINT and SIGTERM end it in order; a second one
    at once. A token is set with GCTD_AUTH_TOKEN or in the settings file.
    """
    output = begin(ctx).output
    settings = sources.load().settings
    from gctd.serve import serve as run_control_plane  # noqa: PLC0415 - help and completion do without it

    return run_program(run_control_plane(settings, on_ready=announce(output, ready_fd)), settings)
