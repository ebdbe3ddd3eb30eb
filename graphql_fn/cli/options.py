"""The flags that the settings of the gateway make."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from terminalkit import SettingFlags, SettingSources, lazily

if TYPE_CHECKING:
    from graphql_fn.settings import Settings

Sources: TypeAlias = "SettingSources[Settings]"

FLAGS: SettingFlags[Settings] = SettingFlags(
    source=lazily("graphql_fn.settings:SETTINGS"),
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
