"""Every setting of the tracker, in one place: the settings of the server, of the worker, and of the commands that ask a server.

A setting comes from its flag, else from `GCTD_<NAME>` in the environment, else from `.gctd.yaml` (in the working directory, or in
the home directory), else it has the default given here. `gctd config show` prints the source of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs
from platformdirs import user_cache_path, user_data_path

from servicekit import ServiceSettings
from terminalkit import SettingsSource, setting, settings

_SIZE = "^[1-9][0-9]{0,15}(KiB|MiB|GiB|TiB)?$"
_SIZES = "a size like 512MiB or 20GiB"
_NAMES = "a name of letters, digits and _ -, 64 at most"
_UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}


def _database() -> str:
    return f"sqlite:{user_data_path('gctd') / 'gctd.db'}"


def _cache() -> Path:
    return user_cache_path("gctd")


@settings
class Settings(ServiceSettings):
    """The settings. Durations are in seconds internally, and written as in `90s`, `10m`, `1h30m`."""

    # Where things are
    nats_url: str = setting(default="nats://nats.infra.svc:4222", help="Address of the broker.")
    database_url: str = setting(default=attrs.Factory(_database), help="Database of the read model: sqlite:PATH or postgresql:.")
    cache_directory: Path = setting(default=attrs.Factory(_cache), help="Where workers keep clones, builds and their locks.")
    url: str = setting(default="http://127.0.0.1:8080", help="Address of the server that commands ask.")

    # The server
    public_badges: bool = setting(default=False, help="Badges without the token, for pages that cannot send it.")

    # Work
    worker_engine: str = setting(default="native", min_length=1, help="Engine for tasks that name none.")
    max_attempts: int = setting(default=3, ge=1, le=10, help="Attempts at a task before it has failed.")
    retry_delay: float = setting(
        default=10.0, duration=True, ge=0.001, le=3600, help="Wait after a first failed attempt; it doubles with each, to 1h."
    )
    queue_timeout: float = setting(default=86_400.0, duration=True, ge=1, help="When a task that no worker takes up expires.")
    task_timeout: float = setting(
        default=1_800.0, duration=True, ge=1, le=86_400, help="Longest that an attempt at a task may take."
    )
    git_timeout: float = setting(default=600.0, duration=True, ge=1, le=86_400, help="Longest that one command of git may take.")

    check_updates_every: float = setting(
        default=0.0,
        duration=True,
        ge=0,
        le=2_592_000,
        help="How often the server checks all tracked refs and queues analyses of new commits; 0: never.",
    )

    store_source: Literal["always", "never"] = setting(
        default="always", help="Keep the source of functions with each analysis, for the pages of functions."
    )

    blob_grace: float = setting(
        default=86_400.0,
        duration=True,
        ge=1,
        le=2_592_000,
        help="How long reports, profiles and logs stay that no task refers to any more, as after `repo rm`.",
    )

    # Workers
    worker_id: str | None = setting(
        default=None,
        pattern="^[A-Za-z0-9_-]{1,64}$",
        form=_NAMES,
        help="Name of the worker; by default made from its host's and its cache's.",
    )
    concurrency: int = setting(default=1, ge=1, le=256, help="Scans that a worker does at a time.")
    fast_concurrency: int = setting(
        default=1,
        ge=0,
        le=64,
        help="Discoveries and scorings of stored profiles that a worker does at a time, in addition to scans.",
    )
    presence_ttl: float = setting(
        default=15.0, duration=True, ge=1, le=600, help="How long a worker that is not heard of counts as present."
    )
    drain_timeout: float = setting(
        default=30.0, duration=True, ge=0, le=86_400, help="How long a worker that is stopped may finish what it does."
    )

    # Limits of workers' caches
    clones_max_bytes: str = setting(
        default="10GiB", pattern=_SIZE, form=_SIZES, help="Size that the clones in the cache may have."
    )
    builds_max_bytes: str = setting(
        default="20GiB", pattern=_SIZE, form=_SIZES, help="Size that Go's builds and downloads may have in the cache."
    )
    toolchains_max_bytes: str = setting(
        default="2GiB",
        pattern=_SIZE,
        form=_SIZES,
        help="Size that Go toolchains that modules asked for may have in the cache; eight at most.",
    )
    keep_free_bytes: str = setting(
        default="2GiB",
        pattern=_SIZE,
        form=_SIZES,
        help="Space that the cache leaves free on its disk, at least 512 MiB; of a small disk, a tenth.",
    )

    # Rights of a repository's code
    sandbox: Literal["auto", "require", "off"] = setting(
        default="auto", help="Sandbox for code of repositories; auto: if the host has one, require: no worker without."
    )
    cgo: Literal["auto", "on", "off"] = setting(default="auto", help="Builds with C code (CGO_ENABLED); auto: as Go decides.")
    go_toolchains: Literal["auto", "local"] = setting(
        default="auto",
        help="Downloads of Go, if the host has none or a module needs a newer one; auto: official releases, local: none.",
    )
    test_network: bool = setting(default=False, help="Network for tests in a sandbox; without a sandbox they always have it.")

    # Rules for repositories
    allow_local: bool = setting(default=False, help="Allow repositories on the local disk.")
    allow_ssh: bool = setting(default=False, help="Allow repositories over ssh.")
    private_hosts: tuple[str, ...] = setting(
        default=(), help="Repository hosts on private networks that are allowed: names, addresses, networks."
    )

    # How repositories and modules are reached
    credentials_file: Path | None = setting(
        default=None, help="Users and passwords, or tokens, for git and module hosts, as in a netrc file."
    )
    ssh_key: Path | None = setting(default=None, help="Private key for repositories over ssh.")
    ssh_known_hosts: Path | None = setting(default=None, help="Host keys for repositories over ssh; no other host is then known.")
    ca_file: Path | None = setting(default=None, help="Certificates, in PEM, that git trusts instead of the system's.")
    http_proxy: str | None = setting(
        default=None,
        secret=True,
        pattern="^https?://[^ ]+$",
        form="an http:// or https:// address",
        help="HTTP proxy for git and for modules; it looks hosts up, so that it has to refuse private networks.",
    )

    # Git hosts
    git_metadata: bool = setting(default=True, help="Stars, forks, language and license from the API of a repository's host.")
    git_hosts: tuple[str, ...] = setting(
        default=(), help="Further git hosts with an API: HOST=github, HOST=gitlab or HOST=KIND@URL."
    )
    git_host_tokens: tuple[str, ...] = setting(default=(), secret=True, help="Tokens for the APIs of git hosts: HOST=TOKEN.")

    # Forges
    forges_file: Path | None = setting(
        default=None, help="File with the forges that send webhooks and get the results: addresses, tokens and secrets, in YAML."
    )
    public_url: str | None = setting(
        default=None,
        pattern="^https?://[^ ]+$",
        form="an http:// or https:// address",
        help="Address of the dashboard, for links in commit statuses and comments.",
    )

    # The broker
    ack_wait: float | None = setting(
        default=None,
        duration=True,
        ge=0.1,
        le=86_400,
        help="How long a scan for all workers may go without a sign of life, where not 10m.",
    )

    @property
    def cgo_wanted(self) -> bool | None:
        """Whether builds have C code; None: as go decides."""
        return None if self.cgo == "auto" else self.cgo == "on"


def size(text: str) -> int:
    """The bytes that a setting such as `20GiB` means."""
    return next((int(text.removesuffix(unit)) * factor for unit, factor in _UNITS.items() if text.endswith(unit)), 0) or int(text)


SETTINGS = SettingsSource(Settings, "GCTD", ".gctd.yaml", others=frozenset({"GCTD_GO", "GCTD_PAGES"}))
"""Sources of the settings: flags, variables, the file, for commands the running system, defaults."""
