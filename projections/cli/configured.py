"""Addresses that a service is configured with, for commands that look at its log and tables: its variable, else its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from projections.model import SettingNames


def address_of(settings: SettingNames, key: str) -> str | None:
    """The address that the service has under a key; None if it has none.

    Raises click.UsageError for a file that cannot be read.
    """
    if given := os.environ.get(settings.variable(key)):
        return given
    for file in (Path(settings.file), Path.home() / settings.file):
        if file.is_file():
            return _of_file(file, key)
    return None


def _of_file(file: Path, key: str) -> str | None:
    import yaml  # noqa: PLC0415 - slow, and most have no file

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from error
    found = _value(content, key) if isinstance(content, dict) else None
    if found is not None and not isinstance(found, str):
        raise click.UsageError(f"{file}: {key} must be a text")
    return found or None


def _value(content: Mapping[Any, Any], key: str) -> Any:
    """The value of a key, which may be nested or dotted, in any case."""
    for name, value in content.items():
        lower = str(name).lower()
        if lower == key:
            return value
        if isinstance(value, dict) and key.startswith(f"{lower}."):
            found = _value(value, key.removeprefix(f"{lower}."))
            if found is not None:
                return found
    return None
