"""The settings of a service, for commands that look at its log, streams and tables: by variable, file or running service."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from terminalkit.config import fields

if TYPE_CHECKING:
    from projections.model import ReadModel, SettingNames, StreamSetting
    from terminalkit.config.running import RunningSystem


def value_of(settings: SettingNames, key: str, chosen: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The value that the service has under a key: of its variable, its file, or the running service; None if it has none.

    `chosen` are addresses that options give, by key. Raises click.UsageError for a file that cannot be read, or if several
    running services fit.
    """
    found = _set_value(settings, key)
    if found is not None:
        return found
    sources = {one: chosen.get(one) or _set_value(settings, one) for one in (settings.nats, settings.database)}
    known = {settings.variable(one): value for one, value in sources.items() if isinstance(value, str)}
    variable = settings.variable(key)
    system = running_service({variable}, known)
    return None if system is None else system.variables[variable]


def is_running(settings: SettingNames) -> bool:
    """Report whether the service runs on this machine, by its announcement."""
    return running_service({settings.variable(settings.database)}, {}) is not None


def is_set(settings: SettingNames) -> bool:
    """Report whether a variable or a file gives the address of the database."""
    return _set_value(settings, settings.database) is not None


def running_service(wanted: Collection[str], known: Mapping[str, str]) -> RunningSystem | None:
    """Return the running system as `terminalkit.config.running` does. Raises click.UsageError if several fit."""
    from terminalkit.config.running import SeveralRunning, running_system  # noqa: PLC0415 - slow, and help does without it

    try:
        return running_system(wanted, known)
    except SeveralRunning as error:
        raise click.UsageError(str(error)) from error


def _set_value(settings: SettingNames, key: str) -> Any:
    if given := os.environ.get(settings.variable(key)):
        return given
    for file in (Path(settings.file), Path.home() / settings.file):
        if file.is_file():
            return _of_file(file, key)
    return None


def address_of(settings: SettingNames, key: str, chosen: Mapping[str, str]) -> str | None:
    """The address that the service has under a key; None if it has none. `chosen` and the errors are as of `value_of`."""
    found = value_of(settings, key, chosen)
    if found is not None and not isinstance(found, str):
        raise click.UsageError(f"{settings.file}: {key} must be a text")
    return found or None


def overrides_of(models: Iterable[ReadModel]) -> Mapping[str, Mapping[str, str]]:
    """The fields of `streams.yaml` that the services of these read models are configured with.

    Raises click.UsageError for a value that cannot be right.
    """
    return {name: fields for model in models for name, fields in model.overrides(partial(_override, model.settings)).items()}


def _override(settings: SettingNames, setting: StreamSetting) -> str | float | None:
    value = value_of(settings, setting.key)
    if isinstance(value, str) and setting.duration:
        try:
            return fields.parse(value)
        except ValueError as error:
            raise click.UsageError(f"the setting {setting.key} ({settings.variable(setting.key)}) {error}") from error
    if value is None or isinstance(value, str) or (setting.duration and isinstance(value, (int, float))):
        return value
    raise click.UsageError(f"{settings.file}: {setting.key} must be a text")


def _of_file(file: Path, key: str) -> Any:
    import yaml  # noqa: PLC0415 - slow, and most have no file

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from error
    return _value(content, key) if isinstance(content, dict) else None


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
