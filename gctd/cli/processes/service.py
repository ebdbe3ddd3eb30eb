"""`gctd serve`, and `gctd config`."""

from __future__ import annotations

from gctd.cli.options import FLAGS
from terminalkit import config_command, lazily, serve_command

SHARED_SETTINGS = ("nats_url", "replicas", "ack_wait", "presence_ttl", "log_level", "log_format")
"""Settings that are the same for every program of one system, or that each of them has."""


serve = serve_command(
    FLAGS,
    lazily("gctd.serve:serve"),
    settings=[
        *("host", "port", "allowed_hosts", "require_tokens", "insecure", "trusted_proxies", "tls_certificate", "tls_key"),
        *("read_timeout", "write_timeout", "idle_timeout", "shutdown_timeout", "public_badges"),
        *("database_url", "max_lag", "worker_engine", "max_attempts", "queue_timeout", "check_updates_every", "blob_grace"),
        *("forges_file", "public_url"),
        *("allow_local", "allow_ssh", "private_hosts"),
        *("event_store_max_bytes", *SHARED_SETTINGS),
    ],
    does="the control plane: API, event stream and web page",
    up="gctd up",
    token="GCTD_AUTH_TOKEN",  # noqa: S106 - the name of a variable
    shows=[
        "gctd serve --nats-url nats://127.0.0.1:4222",
        "gctd serve --host 0.0.0.0 --port 80 --allowed-hosts gctd.example.com",
        "GCTD_AUTH_TOKEN=... gctd serve --config /etc/gctd.yaml",
    ],
)

config = config_command(
    FLAGS,
    "gctd",
    shows=["gctd config show --config /etc/gctd.yaml", "gctd config show --json | jq '.[] | select(.origin != \"default\")'"],
)
