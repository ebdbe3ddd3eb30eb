"""`graphql-fn serve`: the gateway."""

from __future__ import annotations

import click

from graphql_fn.cli.options import Sources, setting_options
from terminalkit.options import examples
from terminalkit.runtime.invocation import begin
from terminalkit.runtime.serving import announce, ready_option, run_program


@click.command(
    epilog=examples(
        "graphql-fn serve",
        "graphql-fn serve --host 0.0.0.0 --no-introspection",
        "graphql-fn serve --pantry-database sqlite:pantry.db --nats-url nats://127.0.0.1:4222",
        "curl -s http://127.0.0.1:8080/function/graphql -d '{ hello }'",
    )
)
@setting_options(
    *("host", "port", "allowed_hosts", "read_timeout", "write_timeout", "idle_timeout", "shutdown_timeout", "max_body"),
    *("max_tokens", "max_depth", "max_aliases", "max_root_fields", "max_errors", "max_cost", "max_subscribers", "query_timeout"),
    *("pantry_database", "tracker_database", "nats_url", "max_lag"),
    *("introspection", "suggestions", "log_level", "log_format"),
)
@ready_option
@click.pass_context
def serve(ctx: click.Context, *, sources: Sources, ready_fd: int | None) -> int:
    """Run the gateway: queries are answered at /function/graphql.

    One line on standard output says where it listens, once it answers requests. SIGINT and SIGTERM end it in order; a second one
    at once. A token is set with GRAPHQL_AUTH_TOKEN or in the settings file.
    """
    output = begin(ctx).output
    settings = sources.load().values
    from graphql_fn.serve import serve as run_gateway  # noqa: PLC0415 - help and completion do without it

    return run_program(run_gateway(settings, on_ready=announce(output, ready_fd)), settings)
