"""Which database a service uses, for commands that look at its tables: what its variable says, else its settings file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click


@attrs.frozen
class Place:
    """Where the service of a read model is told its database: a variable, or a key of a file that is looked for as it does."""

    variable: str
    file: str
    key: str


PLACES = {
    "tracker": Place("GCTD_DATABASE_URL", ".gctd.yaml", "database_url"),
    "pantry": Place("PANTRY_DATABASE_URL", ".pantry.yaml", "database.url"),
}
"""By the names of read models."""


def address_of(model: str) -> str | None:
    """The address that the service is told; None where it is told none. Raises click.UsageError for a file that is none."""
    place = PLACES[model]
    if given := os.environ.get(place.variable):
        return given
    for file in (Path(place.file), Path.home() / place.file):
        if file.is_file():
            return _of_file(file, place.key)
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
