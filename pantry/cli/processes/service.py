"""`pantry serve`, and `pantry config`."""

from __future__ import annotations

from pantry.cli.options import FLAGS
from terminalkit import config_command, lazily, serve_command

serve = serve_command(
    FLAGS,
    lazily("pantry.serve:serve"),
    settings=[
        *(
            "host",
            "port",
            "allowed_hosts",
            "require_tokens",
            "insecure",
            "trusted_proxies",
            "tls_certificate",
            "tls_key",
            "public_url",
            "read_timeout",
            "write_timeout",
            "idle_timeout",
            "shutdown_timeout",
        ),
        *("database_url", "max_lag", "nats_url", "replicas", "event_store_max_bytes", "log_level", "log_format"),
    ],
    does="the ledger: API, event stream and page",
    up="pantry up",
    token="PANTRY_AUTH_TOKEN",  # noqa: S106 - the name of a variable
    shows=[
        "pantry serve --nats-url nats://127.0.0.1:4222",
        "pantry serve --host 127.0.0.1 --port 0",
        "PANTRY_AUTH_TOKEN=... pantry serve --config /etc/pantry.yaml",
    ],
)

run = serve

config = config_command(FLAGS, "pantry", shows=["pantry config show --config x.yaml"])
