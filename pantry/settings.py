"""The settings of the pantry: flag over environment (`PANTRY_*`) over `.pantry.yaml` over default (specification, section 8)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
from platformdirs import user_data_path

from terminalkit.config import loading as layers
from terminalkit.config.loading import LoadedSettings, SettingInfo, setting, settings

PREFIX = "PANTRY"
FILE = ".pantry.yaml"


def _database() -> str:
    return f"sqlite:{user_data_path('pantry') / 'pantry.db'}"


@settings
class Settings:
    """What can be set. Durations are in seconds inside, and written as in `90s`, `10m`, `1h30m`."""

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
        default=(), key="server.allowedhosts", help="Host names under which the server may be asked, beside loopback."
    )
    auth_token: str | None = setting(
        default=None, secret=True, min_length=8, help="Bearer token that the server wants, and that commands send."
    )
    database_url: str = setting(
        default=attrs.Factory(_database), key="database.url", help="Database of the read model: sqlite:PATH or postgresql:."
    )
    max_lag: float = setting(
        default=30.0, duration=True, ge=1, help="Lag of the read model from which on the server is not ready."
    )
    nats_url: str = setting(default="nats://nats.infra.svc:4222", help="Address of the broker.")
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold the stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(
        default=None,
        pattern="^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$",
        help="Size that the event stream may have, as in 20GiB, where not what streams.yaml says.",
    )
    url: str = setting(default="http://127.0.0.1:8080", help="Address of the server that commands ask.")
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        default="info", key="loglevel", env="PANTRY_LOG_LEVEL", help="Least level that is logged."
    )
    log_format: Literal["auto", "json", "text"] = setting(
        default="json", key="logformat", env="PANTRY_LOG_FORMAT", help="Form of the log; auto: text on a terminal, else JSON."
    )


_OTHER_SPELLINGS = {"PANTRY_LOGLEVEL": "PANTRY_LOG_LEVEL", "PANTRY_LOGFORMAT": "PANTRY_LOG_FORMAT"}


def load(flags: Mapping[str, Any] | None = None, *, file: Path | None = None) -> LoadedSettings[Settings]:
    """The settings of this process: `flags` by name (None: not given), environment, `file` or the one that is found, defaults.

    Raises terminalkit.config.loading.SettingsError, which names every value that cannot be right and where it stands.
    """
    env = {_OTHER_SPELLINGS[name]: value for name, value in os.environ.items() if name in _OTHER_SPELLINGS} | dict(os.environ)
    return layers.load(Settings, prefix=PREFIX, flags=flags or {}, env=env, file=file or _found())


def _found() -> Path | None:
    """The settings file of the working directory, else of the home directory, where there is one."""
    return next((place for place in (Path(FILE), Path.home() / FILE) if place.is_file()), None)


def describe(name: str) -> SettingInfo:
    """What is to be said of a setting in the help of a command."""
    return layers.describe(Settings, name, prefix=PREFIX)
