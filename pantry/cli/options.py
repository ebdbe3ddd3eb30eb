"""The flags that the settings of the pantry make."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from terminalkit import SettingFlags, SettingSources, lazily

if TYPE_CHECKING:
    from pantry.settings import Settings

Sources: TypeAlias = "SettingSources[Settings]"

FLAGS: SettingFlags[Settings] = SettingFlags(
    source=lazily("pantry.settings:SETTINGS"),
    file=".pantry.yaml",
    numbers=frozenset({"port", "replicas"}),
    switches=frozenset({"insecure", "require_tokens"}),
    lists=frozenset({"allowed_hosts", "trusted_proxies"}),
)

setting_options = FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
