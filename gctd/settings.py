"""Every setting of the tracker, in one place: the server's, the worker's, and those of the commands that ask a server.

A setting comes from its flag, else from `GCTD_<NAME>` in the environment, else from `.gctd.yaml` (in the working directory, or in
the home directory), else it has the default given here. `gctd config show` says which.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import attrs
from platformdirs import user_cache_path, user_data_path

from httpkit import settings as layers
from httpkit.settings import Setting, SettingsError, Shown, setting, settings
from httpkit.structure import attributes_of

__all__ = ["FILE", "PREFIX", "About", "Loaded", "Settings", "SettingsError", "describe", "load"]

PREFIX = "GCTD"
FILE = ".gctd.yaml"


def _database() -> str:
    return f"sqlite:{user_data_path('gctd') / 'gctd.db'}"


def _cache() -> Path:
    return user_cache_path("gctd")


@settings
class Settings:
    """What can be set. Durations are in seconds inside, and written as in `90s`, `10m`, `1h30m`."""

    # Where things are
    nats_url: str = setting(default="nats://nats.infra.svc:4222", help="Address of the broker.")
    database_url: str = setting(default=attrs.Factory(_database), help="Database of the read model: sqlite:PATH.")
    cache_directory: Path = setting(default=attrs.Factory(_cache), help="Where workers keep clones, builds and their locks.")
    url: str = setting(default="http://127.0.0.1:8080", help="Address of the server that commands ask.")

    # The server
    host: str = setting(default="127.0.0.1", min_length=1, help="Address to listen on.")
    port: int = setting(default=8080, ge=0, le=65_535, help="Port to listen on; 0 for a free one.")
    allowed_hosts: tuple[str, ...] = setting(default=(), help="Host names under which the server may be asked, beside loopback.")
    auth_token: str | None = setting(
        default=None, secret=True, min_length=8, help="Bearer token that the server wants, and that commands send."
    )
    max_lag: float = setting(
        default=30.0, duration=True, ge=1, help="Lag of the read model from which on the server is not ready."
    )

    # Work
    worker_engine: str = setting(default="native", min_length=1, help="Engine for tasks that name none.")
    max_attempts: int = setting(default=3, ge=1, le=10, help="Attempts at a task before it has failed.")
    retry_delay: float = setting(
        default=10.0, duration=True, ge=0.001, le=3600, help="Wait after a first failed attempt; it doubles with each."
    )
    queue_timeout: float = setting(default=86_400.0, duration=True, ge=1, help="When a task that no worker takes up expires.")
    task_timeout: float = setting(
        default=1_800.0, duration=True, ge=1, le=86_400, help="Longest that an attempt at a task may take."
    )
    git_timeout: float = setting(default=600.0, duration=True, ge=1, le=86_400, help="Longest that one command of git may take.")

    # Workers
    worker_id: str | None = setting(
        default=None, pattern="^[A-Za-z0-9_-]{1,64}$", help="Name of the worker; by default its host's."
    )
    concurrency: int = setting(default=1, ge=1, le=256, help="Jobs that a worker does at a time.")
    presence_ttl: float = setting(
        default=15.0, duration=True, ge=1, le=600, help="How long a worker that is not heard of counts as present."
    )
    drain_timeout: float = setting(
        default=30.0, duration=True, ge=0, le=86_400, help="How long a worker that is stopped may finish what it does."
    )

    # What repositories may be
    allow_local: bool = setting(default=False, help="Repositories on the local disk, too.")
    allow_ssh: bool = setting(default=False, help="Repositories over ssh, too.")
    private_hosts: tuple[str, ...] = setting(
        default=(), help="Repository hosts on private networks that are allowed: names, addresses, networks."
    )

    # The broker's streams
    replicas: int = setting(default=1, ge=1, le=5, help="Servers that hold each stream: 1, or 3 on a cluster.")
    event_store_max_bytes: str | None = setting(
        default=None,
        pattern="^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$",
        help="Size that the event stream may have, as in 20GiB, where not what streams.yaml says.",
    )
    ack_wait: float | None = setting(
        default=None, duration=True, ge=0.1, le=86_400, help="How long a job may go without a sign of life, where not 10m."
    )

    # Logs
    log_level: Literal["debug", "info", "warning", "error"] = setting(default="info", help="Least level that is logged.")
    log_format: Literal["auto", "json", "text"] = setting(
        default="auto", help="Form of the log; auto: text on a terminal, else JSON."
    )


@attrs.frozen
class Loaded:
    """The settings of a process, and each as it is shown: secrets masked, with the source it comes from."""

    settings: Settings
    shown: Sequence[Shown]


@attrs.frozen
class About:
    """What a setting is for, its variable in the environment, its default as a user writes it, and a word for its values."""

    help: str
    env: str
    default: str
    metavar: str | None


def describe(name: str) -> About:
    """What is to be said of a setting in the help of a command."""
    field = next(attribute for attribute in attributes_of(Settings) if attribute.name == name)
    setting_ = next(value for value in field.metadata.values() if isinstance(value, Setting))
    defaults = layers.load(Settings, prefix=PREFIX, flags={}, env={}).show()
    value = next(shown.value for shown in defaults if shown.key == name)
    default = "none" if value in (None, ()) else str(value).lower() if isinstance(value, bool) else str(value)
    return About(setting_.help, f"{PREFIX}_{name.upper()}", default, _metavar(field.type, duration=setting_.duration))


def _metavar(type_: Any, *, duration: bool) -> str | None:
    if duration:
        return "DURATION"
    if get_origin(type_) is Literal:
        return "|".join(get_args(type_))
    return {Path: "PATH", int: "INTEGER", bool: None}.get(type_, "TEXT")


def load(flags: Mapping[str, Any] | None = None, *, file: Path | None = None) -> Loaded:
    """The settings of this process: `flags` by name (None: not given), environment, `file` or the one that is found, defaults.

    Raises httpkit.settings.SettingsError, which names every value that cannot be right and where it stands.
    """
    loaded = layers.load(Settings, prefix=PREFIX, flags=flags or {}, env=os.environ, file=file or _found())
    return Loaded(loaded.values, loaded.show())


def _found() -> Path | None:
    """The settings file of the working directory, else of the home directory, where there is one."""
    return next((place for place in (Path(FILE), Path.home() / FILE) if place.is_file()), None)
