"""The flags that the gateway's settings make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from terminalkit.config import flags as settings
from terminalkit.config.flags import SettingFlags

if TYPE_CHECKING:
    from graphql_fn.settings import Settings
    from terminalkit.config.loading import LoadedSettings, SettingInfo

Sources: TypeAlias = "settings.SettingSources[LoadedSettings[Settings]]"


def _load(flags: Mapping[str, Any], file: Path | None) -> LoadedSettings[Settings]:
    from graphql_fn.settings import load  # noqa: PLC0415 - only where a command runs

    return load(flags, file=file)


def _describe(name: str) -> SettingInfo:
    from graphql_fn.settings import describe  # noqa: PLC0415 - only for the help

    return describe(name)


_FLAGS = SettingFlags(
    load=_load,
    describe=_describe,
    file=".graphql-fn.yaml here, else in the home directory",
    numbers=frozenset(
        {
            *("port", "max_body", "max_tokens", "max_depth", "max_aliases", "max_root_fields", "max_errors", "max_cost"),
            "max_subscribers",
        }
    ),
    switches=frozenset({"introspection", "suggestions"}),
    lists=frozenset({"allowed_hosts"}),
)

setting_options = _FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
