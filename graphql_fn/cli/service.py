"""`graphql-fn serve`, and `graphql-fn config`."""

from __future__ import annotations

from graphql_fn.cli.options import FLAGS
from terminalkit import config_command, lazily, serve_command

serve = serve_command(
    FLAGS,
    lazily("graphql_fn.serve:serve"),
    settings=[
        *(
            "host",
            "port",
            "allowed_hosts",
            "allowed_origins",
            "require_tokens",
            "insecure",
            "trusted_proxies",
            "tls_certificate",
            "tls_key",
        ),
        *("read_timeout", "write_timeout", "idle_timeout", "shutdown_timeout", "max_body"),
        *(
            "max_tokens",
            "max_depth",
            "max_aliases",
            "max_root_fields",
            "max_errors",
            "max_cost",
            "max_subscribers",
            "query_timeout",
        ),
        *("pantry_database", "tracker_database", "nats_url", "max_lag"),
        *("introspection", "suggestions", "log_level", "log_format"),
    ],
    does="the gateway: queries are answered at /function/graphql",
    token="GRAPHQL_AUTH_TOKEN",  # noqa: S106 - the name of a variable
    shows=[
        "graphql-fn serve",
        "graphql-fn serve --host 0.0.0.0 --no-introspection",
        "graphql-fn serve --pantry-database sqlite:pantry.db --nats-url nats://127.0.0.1:4222",
        "curl -s http://127.0.0.1:8080/function/graphql -d '{ hello }'",
    ],
)

config = config_command(FLAGS, "graphql-fn")
