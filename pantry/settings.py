"""The settings of the pantry: flag over environment (`PANTRY_*`) over `.pantry.yaml` over default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import attrs
from platformdirs import user_data_path

from servicekit import ServiceSettings
from terminalkit import SettingsSource, setting, settings


def _database() -> str:
    return f"sqlite:{user_data_path('pantry') / 'pantry.db'}"


@settings
class Settings(ServiceSettings):
    """The settings. Durations are in seconds inside, and written as in `90s`, `10m`, `1h30m`."""

    KEYS: ClassVar[Mapping[str, str]] = {
        "host": "server.host",
        "port": "server.port",
        "read_timeout": "server.readtimeout",
        "write_timeout": "server.writetimeout",
        "idle_timeout": "server.idletimeout",
        "shutdown_timeout": "server.shutdowntimeout",
        "allowed_hosts": "server.allowedhosts",
        "require_tokens": "server.requiretokens",
        "insecure": "server.insecure",
        "trusted_proxies": "server.trustedproxies",
        "tls_certificate": "server.tlscertificate",
        "tls_key": "server.tlskey",
        "database_url": "database.url",
        "log_level": "loglevel",
        "log_format": "logformat",
    }

    host: str = setting(default="0.0.0.0", min_length=1, help="Address to listen on.")  # noqa: S104 - specified
    public_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ]+$",
        form="an http:// or https:// address",
        help="Address of the page for other devices, as in https://pantry.home:8080: for pairing codes.",
    )
    database_url: str = setting(default=attrs.Factory(_database), help="Database of the read model: sqlite:PATH or postgresql:.")
    nats_url: str = setting(default="nats://nats.infra.svc:4222", help="Address of the broker.")
    url: str = setting(default="http://127.0.0.1:8080", help="Address of the server that commands ask.")
    log_level: Literal["debug", "info", "warn", "warning", "error"] = setting(
        default="info", env="PANTRY_LOG_LEVEL", help="Least level that is logged."
    )
    log_format: Literal["auto", "json", "text"] = setting(
        default="json", env="PANTRY_LOG_FORMAT", help="Form of the log; auto: text on a terminal, else JSON."
    )


SETTINGS = SettingsSource(Settings, "PANTRY", ".pantry.yaml")
"""Sources of the settings: flags, variables, the file, for commands the running system, defaults."""
