"""The flags that the settings of the tracker make."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from terminalkit import SettingFlags, SettingSources, lazily

if TYPE_CHECKING:
    from gctd.settings import Settings

Sources: TypeAlias = "SettingSources[Settings]"

FLAGS: SettingFlags[Settings] = SettingFlags(
    source=lazily("gctd.settings:SETTINGS"),
    file=".gctd.yaml",
    numbers=frozenset({"port", "concurrency", "max_attempts", "replicas"}),
    switches=frozenset(
        {
            *("allow_local", "allow_ssh", "git_metadata", "public_badges", "test_network"),
            *("insecure", "require_tokens"),
        }
    ),
    lists=frozenset({"allowed_hosts", "private_hosts", "git_hosts", "trusted_proxies"}),
    short_names={"worker_id": "--id"},
)

setting_options = FLAGS.options
"""Decorator: adds the flags of the named settings and `--config` to a command, which gets the `sources` of its settings."""
