"""The flags that the settings of the gateway make."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from terminalkit.config.flags import SettingFlags, SettingSources

if TYPE_CHECKING:
    from graphql_fn.settings import Settings
    from terminalkit.config.loading import SettingsSource

Sources: TypeAlias = "SettingSources[Settings]"


def _source() -> SettingsSource[Settings]:
    from graphql_fn.settings import SETTINGS  # noqa: PLC0415 - only for the help, and for a command that runs

    return SETTINGS


FLAGS = SettingFlags(
    source=_source,
    file=".graphql-fn.yaml",
    numbers=frozenset(
        {
            *("port", "max_body", "max_tokens", "max_depth", "max_aliases", "max_root_fields", "max_errors", "max_cost"),
            "max_subscribers",
        }
    ),
    switches=frozenset({"insecure", "introspection", "require_tokens", "suggestions"}),
    lists=frozenset({"allowed_hosts", "allowed_origins", "trusted_proxies"}),
)

setting_options = FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
