"""The flags that the tracker's settings make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from terminalkit.config import flags as settings
from terminalkit.config.flags import SettingFlags

if TYPE_CHECKING:
    from gctd.settings import Loaded
    from terminalkit.config.loading import SettingInfo

Sources: TypeAlias = "settings.SettingSources[Loaded]"


def _load(flags: Mapping[str, Any], file: Path | None) -> Loaded:
    from gctd.settings import load  # noqa: PLC0415 - only where a command runs

    return load(flags, file=file)


def _describe(name: str) -> SettingInfo:
    from gctd.settings import describe  # noqa: PLC0415 - only for the help

    return describe(name)


_FLAGS = SettingFlags(
    load=_load,
    describe=_describe,
    file=".gctd.yaml here, else in the home directory",
    numbers=frozenset({"port", "concurrency", "max_attempts", "replicas"}),
    switches=frozenset({"allow_local", "allow_ssh", "git_metadata", "public_badges", "test_network"}),
    lists=frozenset({"allowed_hosts", "private_hosts", "git_hosts"}),
    also={"worker_id": "--id"},
)

setting_options = _FLAGS.options
"""Gives a command the flags of the settings that it names, and `--config`; it gets the `sources` of its settings."""
