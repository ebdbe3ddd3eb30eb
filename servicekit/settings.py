"""The settings that every service has."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from terminalkit.config.loading import setting, settings

_SIZE = "^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$"


@settings
class ServerSettings:
    """The settings of a process that answers requests. Durations are in seconds, and written as in `90s`, `10m`, `1h30m`."""

    host: str = setting(default="127.0.0.1", min_length=1, help="Address to listen on.")
    port: int = setting(default=8080, ge=0, le=65_535, help="Port to listen on; 0 for a free one.")
    allowed_hosts: tuple[str, ...] = setting(
        default=(), help="Host names that requests may use for the server, besides loopback."
    )
    auth_token: str | None = setting(default=None, secret=True, min_length=8, help="Bearer token that requests must have.")
    require_tokens: bool = setting(default=False, help="Ask for a token on loopback as well.")
    insecure: bool = setting(default=False, help="Serve every client without a token, on any address.")
    trusted_proxies: tuple[str, ...] = setting(
        default=(), help="Addresses and networks of proxies whose X-Forwarded headers are believed."
    )
    tls_certificate: Path | None = setting(default=None, help="Certificate for https, in PEM, with its chain.")
    tls_key: Path | None = setting(default=None, help="Key of the certificate, in PEM, without a password.")
    idle_timeout: float = setting(default=60.0, duration=True, ge=0.1, le=86_400, help="End of a connection without requests.")
    read_timeout: float = setting(default=15.0, duration=True, ge=0.1, le=3600, help="Longest time for a request to arrive.")
    write_timeout: float = setting(default=15.0, duration=True, ge=0.1, le=3600, help="Longest time for a client to take data.")
    shutdown_timeout: float = setting(default=30.0, duration=True, ge=0, le=3600, help="Time for open requests at the end.")
    log_level: Literal["debug", "info", "warn", "warning", "error"] = setting(default="info", help="Least level that is logged.")
    log_format: Literal["auto", "json", "text"] = setting(
        default="auto", help="Form of the log; auto: text on a terminal, else JSON."
    )


@settings
class ServiceSettings(ServerSettings):
    """The settings of a service with a log and a read model, if it has no others."""

    database_url: str | None = setting(
        default=None,
        help="Database of the read model: sqlite:PATH or postgresql://; without it a file in the user's data directory.",
    )
    max_lag: float = setting(default=30.0, duration=True, ge=1, help="Lag of the read model above which it is not ready.")
    nats_url: str = setting(default="nats://127.0.0.1:4222", help="Address of the broker.")
    monitoring_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ,]+(, *https?://[^ ,]+)*$",
        form="an address like http://host:8222, or several with commas between",
        help="Address of nats-server's monitoring port, or several with commas between: there it shows its health.",
    )
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold the stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(
        default=None, pattern=_SIZE, form="a size like 512MiB or 20GiB", help="Size limit of the event stream, as in 20GiB."
    )
