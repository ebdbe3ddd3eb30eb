"""The flags that the settings of the pantry make."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from terminalkit.config.flags import SettingFlags, SettingSources

if TYPE_CHECKING:
    from pantry.settings import Settings
    from terminalkit.config.loading import SettingsSource

Sources: TypeAlias = "SettingSources[Settings]"


def _source() -> SettingsSource[Settings]:
    from pantry.settings import SETTINGS  # noqa: PLC0415 - only for the help, and for a command that runs

    return SETTINGS


FLAGS = SettingFlags(
    source=_source,
    file=".pantry.yaml",
    numbers=frozenset({"port", "replicas"}),
    switches=frozenset({"insecure", "require_tokens"}),
    lists=frozenset({"allowed_hosts", "trusted_proxies"}),
)

setting_options = FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
