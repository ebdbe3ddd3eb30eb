"""The flags that the pantry's settings make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from terminalkit.config import flags as settings
from terminalkit.config.flags import SettingFlags

if TYPE_CHECKING:
    from pantry.settings import Settings
    from terminalkit.config.loading import LoadedSettings, SettingInfo

Sources: TypeAlias = "settings.SettingSources[LoadedSettings[Settings]]"


def _load(flags: Mapping[str, Any], file: Path | None) -> LoadedSettings[Settings]:
    from pantry.settings import load  # noqa: PLC0415 - only where a command runs

    return load(flags, file=file)


def _describe(name: str) -> SettingInfo:
    from pantry.settings import describe  # noqa: PLC0415 - only for the help

    return describe(name)


_FLAGS = SettingFlags(
    load=_load,
    describe=_describe,
    file=".pantry.yaml here, else in the home directory",
    numbers=frozenset({"port", "replicas"}),
    lists=frozenset({"allowed_hosts"}),
)

setting_options = _FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
