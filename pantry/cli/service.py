"""`pantry serve`: the ledger."""

from __future__ import annotations

import click

from pantry.cli.options import Sources, setting_options
from terminalkit.options import examples
from terminalkit.runtime.invocation import begin
from terminalkit.runtime.serving import announce, ready_option, run_program


@click.command(
    epilog=examples(
        "pantry serve --nats-url nats://127.0.0.1:4222",
        "pantry serve --host 127.0.0.1 --port 0",
        "PANTRY_AUTH_TOKEN=... pantry serve --config /etc/pantry.yaml",
    )
)
@setting_options(
    *("host", "port", "allowed_hosts", "read_timeout", "write_timeout", "idle_timeout", "shutdown_timeout"),
    *("database_url", "max_lag", "nats_url", "replicas", "event_store_max_bytes", "log_level", "log_format"),
)
@ready_option
@click.pass_context
def serve(ctx: click.Context, *, sources: Sources, ready_fd: int | None) -> int:
    """Run the ledger: API, event stream and page.

    One line on standard output says where it listens, once it answers requests. SIGINT and SIGTERM end it in order; a second one
    at once. A token is set with PANTRY_AUTH_TOKEN or in the settings file.
    """
    output = begin(ctx).output
    settings = sources.load().values
    from pantry.serve import serve as run_ledger  # noqa: PLC0415 - help and completion do without it

    return run_program(run_ledger(settings, on_ready=announce(output, ready_fd)), settings)


run = serve
