"""The settings of the pantry: flag over environment (`PANTRY_*`) over `.pantry.yaml` over default."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs
from platformdirs import user_data_path

from terminalkit import SettingsSource, setting, settings


def _database() -> str:
    return f"sqlite:{user_data_path('pantry') / 'pantry.db'}"


@settings
class Settings:
    """The settings. Durations are in seconds inside, and written as in `90s`, `10m`, `1h30m`."""

    host: str = setting(default="0.0.0.0", key="server.host", min_length=1, help="Address to listen on.")  # noqa: S104 - specified
    port: int = setting(default=8080, key="server.port", ge=0, le=65_535, help="Port to listen on; 0 for a free one.")
    read_timeout: float = setting(
        default=15.0, key="server.readtimeout", duration=True, ge=0.1, le=3600, help="Longest that a request may take to arrive."
    )
    write_timeout: float = setting(
        default=15.0, key="server.writetimeout", duration=True, ge=0.1, le=3600, help="Longest that a client may take an answer."
    )
    idle_timeout: float = setting(
        default=60.0, key="server.idletimeout", duration=True, ge=0.1, le=86_400, help="When a connection without requests ends."
    )
    shutdown_timeout: float = setting(
        default=30.0, key="server.shutdowntimeout", duration=True, ge=0, le=3600, help="Time for open requests at the end."
    )
    allowed_hosts: tuple[str, ...] = setting(
        default=(), key="server.allowedhosts", help="Host names under which the server may be asked, in addition to loopback."
    )
    auth_token: str | None = setting(
        default=None, secret=True, min_length=8, help="Bearer token that the server wants, and that commands send."
    )
    require_tokens: bool = setting(default=False, key="server.requiretokens", help="Ask for a token on loopback as well.")
    insecure: bool = setting(default=False, key="server.insecure", help="Serve every client without a token, on any address.")
    trusted_proxies: tuple[str, ...] = setting(
        default=(), key="server.trustedproxies", help="Addresses and networks of proxies whose X-Forwarded headers are believed."
    )
    tls_certificate: Path | None = setting(
        default=None, key="server.tlscertificate", help="Certificate for https, in PEM, with its chain."
    )
    tls_key: Path | None = setting(default=None, key="server.tlskey", help="Key of the certificate, in PEM, without a password.")
    public_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ]+$",
        form="an http:// or https:// address",
        help="Address of the page for other devices, as in https://pantry.home:8080: for pairing codes.",
    )
    database_url: str = setting(
        default=attrs.Factory(_database), key="database.url", help="Database of the read model: sqlite:PATH or postgresql:."
    )
    max_lag: float = setting(
        default=30.0, duration=True, ge=1, help="Lag of the read model from which on the server is not ready."
    )
    nats_url: str = setting(default="nats://nats.infra.svc:4222", help="Address of the broker.")
    monitoring_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ,]+(, *https?://[^ ,]+)*$",
        form="an address like http://host:8222, or several with commas between",
        help="Address of nats-server's monitoring port, or several with commas between: there it shows its health.",
    )
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold the stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(
        default=None,
        pattern="^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$",
        form="a size like 512MiB or 20GiB",
        help="Size that the event stream may have, as in 20GiB, where not what streams.yaml says.",
    )
    url: str = setting(default="http://127.0.0.1:8080", help="Address of the server that commands ask.")
    log_level: Literal["debug", "info", "warn", "warning", "error"] = setting(
        default="info", key="loglevel", env="PANTRY_LOG_LEVEL", help="Least level that is logged."
    )
    log_format: Literal["auto", "json", "text"] = setting(
        default="json", key="logformat", env="PANTRY_LOG_FORMAT", help="Form of the log; auto: text on a terminal, else JSON."
    )


SETTINGS = SettingsSource(Settings, "PANTRY", ".pantry.yaml")
"""Sources of the settings: flags, variables, the file, for commands the running system, defaults."""
