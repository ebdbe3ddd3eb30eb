"""Configuration of a service: flag over environment over file over default, from one attrs class.

    @settings
    class ShopSettings:
        KEYS = {"port": "server.port"}
        port: int = setting(default=8080, ge=0, le=65535, help="Port to listen on; 0: a free one.")
        read_timeout: float = setting(default=15.0, duration=True)

    loaded = load(ShopSettings, prefix="SHOP", flags=flags, env=os.environ, file=Path(".shop.yaml"))

The environment variable of `server.port` is `SHOP_SERVER_PORT`, unless `env` names another. Keys in a file are nested or
dotted, in any case.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast, dataclass_transform, get_args, get_origin

import attrs
from cattrs.errors import BaseValidationError

from httpkit.errors import HttpkitError, suggestion
from httpkit.messages.fields import JSON, TEXT, Rule, Wrong, attributes_of, flat_problems, is_enum

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_LONGEST = 10 * 365 * 24 * 3600.0

SCHEMA = {"type": "string", "pattern": r"^([0-9]{1,12}(\.[0-9]{1,9})?(h|ms|m|s|us|µs|ns))+$", "examples": ["15s", "10m", "1h30m"]}
"""The texts that `parse` takes, in JSON Schema."""


def parse_duration(text: object) -> float:
    """The seconds that a text means. Raises ValueError with a text for the user; ten years is the longest."""
    parts = _PART.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"must be a duration like 15s, 10m or 1h30m, not {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LONGEST:
        raise ValueError("must be at most ten years")
    return seconds


def show_duration(seconds: float) -> str:
    """The shortest text for a duration, to the millisecond."""
    rest = round(seconds * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


C = TypeVar("C")
_KEY = "httpkit.setting"
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+@")
MASK = "***"


@attrs.frozen(kw_only=True)
class Setting:
    """The declaration of a field of a settings class."""

    env: str | None
    help: str
    secret: bool
    duration: bool
    rule: Rule


def setting(
    *,
    default: Any = attrs.NOTHING,
    env: str | None = None,
    help: str = "",  # noqa: A002 - what it is called everywhere else
    secret: bool = False,
    duration: bool = False,
    **limits: Any,
) -> Any:
    """A setting. `env` is its variable if it is not made of its key; a `duration` is in seconds inside.

    Without a default it has to be set. Its limits are as in `httpkit.messages.fields.Rule`.
    """
    declared = Setting(env=env, help=help, secret=secret, duration=duration, rule=Rule(**limits))
    return attrs.field(default=default, metadata={_KEY: declared})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
def settings(cls: type[C]) -> type[C]:
    """Make a class a settings class: a frozen attrs class with keyword-only fields.

    Its class attribute `KEYS` maps attributes to other names in files.
    """
    return attrs.frozen(cls, kw_only=True)


@attrs.frozen
class SettingInfo:
    """The description of a setting, its variable in the environment, its default as a user writes it, a word for its values.

    `default` is None if the setting has to be set.
    """

    help: str
    env: str
    default: str | None
    metavar: str | None


def describe(cls: type[Any], name: str, *, prefix: str) -> SettingInfo:
    """Return the description of a setting for the help of a command."""
    field = next(field for field in fields_of(cls, prefix) if field.name == name)
    metavar = _metavar(field.attribute.type, duration=field.about.duration)
    return SettingInfo(field.about.help, field.env, _default_of(field), metavar)


def _default_of(field: Field) -> str | None:
    default: Any = field.attribute.default
    if default is attrs.NOTHING:
        return None
    if hasattr(default, "takes_self"):  # a Factory
        if default.takes_self:
            return "as other settings give it"
        default = default.factory()
    return as_text(field.shown(default)) or "none"


def as_text(shown: Any) -> str:
    """A value that is shown, as it is written in the environment."""
    match shown:
        case None:
            return ""
        case bool():
            return str(shown).lower()
        case tuple() | list():
            return ",".join(map(str, shown))
        case _:
            return str(shown)


def _metavar(type_: Any, *, duration: bool) -> str | None:
    if duration:
        return "DURATION"
    if get_origin(type_) is Literal:
        return "|".join(map(str, get_args(type_)))
    if is_enum(type_):
        return "|".join(str(item.value) for item in type_)
    return "PATH" if Path in get_args(type_) else {Path: "PATH", int: "INTEGER", bool: None}.get(type_, "TEXT")


@attrs.frozen
class Field:
    """A field of a settings class, with its key and its variable."""

    attribute: attrs.Attribute[Any]
    about: Setting
    key: str
    env: str

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return self.attribute.name

    def from_flag(self, flag: Any) -> Any:
        """The value that a flag means: a text as in the environment, texts of a flag that is repeated, or a value."""
        if isinstance(flag, str):
            return self.from_text(flag)
        if isinstance(flag, tuple) and all(isinstance(part, str) for part in flag):
            return TEXT.structure(list(flag), self._type)
        return self.from_value(flag)

    def from_text(self, text: str) -> Any:
        """The value that a text means, as in the environment."""
        if self.about.duration:
            return parse_duration(text)
        if get_origin(self.attribute.type) in (tuple, list):
            return TEXT.structure([part.strip() for part in text.split(",") if part.strip()], self._type)
        if self._is_path:
            return Path(text)
        return TEXT.structure(text, self._type)

    def from_value(self, value: Any) -> Any:
        """The value that a value of a file means."""
        if isinstance(value, self.attribute.type) if isinstance(self.attribute.type, type) else False:
            return value
        if self.about.duration and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and (self.about.duration or self._is_path):
            return self.from_text(value)
        value = list(value) if isinstance(value, tuple) else value
        return JSON.structure(Decimal(str(value)) if isinstance(value, float) else value, self._type)

    @property
    def _type(self) -> Any:
        return self.attribute.type

    @property
    def _is_path(self) -> bool:
        return self._type is Path or Path in get_args(self._type)

    def check(self, value: Any) -> Any:
        """The value, if it is within its limits."""
        if (problem := self.about.rule.broken(value)) is not None:
            raise Wrong(problem)
        return value

    def shown(self, value: Any) -> Any:
        """The value without secrets."""
        if self.about.secret and value:
            return MASK
        if self.about.duration and value is not None:
            return show_duration(value)
        if isinstance(value, str):
            return _PASSWORD.sub(rf"\1:{MASK}@", value)
        if isinstance(value, (tuple, list)):
            return tuple(map(self.shown, value))
        if isinstance(value, Enum):
            return value.value
        return str(value) if isinstance(value, (Path, Decimal)) else value


def fields_of(cls: type, prefix: str) -> list[Field]:
    """The fields of a settings class, whose variables begin with a prefix."""
    fields, keys = [], getattr(cls, "KEYS", {})
    for attribute in attributes_of(cls):
        about = cast("Setting", attribute.metadata[_KEY])
        key = keys.get(attribute.name, attribute.name)
        fields.append(Field(attribute, about, key, about.env or f"{prefix}_{key.replace('.', '_').upper()}"))
    return fields


_KUBERNETES = re.compile("_SERVICE_(HOST|PORT)|_PORT_[0-9]+_(TCP|UDP)")


class SettingsError(HttpkitError):
    """The configuration cannot be right. The text names every wrong value and its source."""


@attrs.frozen
class SettingValue:
    """A setting as it is shown: its key, its value without secrets, its source, its variable, its description."""

    key: str
    value: Any
    origin: str
    env: str
    help: str


@attrs.frozen
class LoadedSettings(Generic[C]):
    """Settings, and by key where each came from: `flag`, `environment NAME`, `file PATH`, `running COMMAND`, `default`."""

    values: C
    origins: Mapping[str, str]
    prefix: str

    def show(self) -> list[SettingValue]:
        """All settings, in the order of the class, secrets masked (passwords in URLs too)."""
        return [
            SettingValue(
                field.key, field.shown(getattr(self.values, field.name)), self.origins[field.key], field.env, field.about.help
            )
            for field in fields_of(type(self.values), self.prefix)
        ]


def load(
    cls: type[C], *, prefix: str, flags: Mapping[str, Any], env: Mapping[str, str], file: Path | None = None
) -> LoadedSettings[C]:
    """The settings of this process.

    `flags` by attribute name; None means that it was not given. A `file` that does not exist is an error, so a caller that looks
    in several places passes the file that it found. Raises SettingsError with all errors.
    """
    fields = fields_of(cls, prefix)
    errors: list[str] = []
    in_file = {} if file is None else read_file(file)
    known = {field.key.lower() for field in fields}
    errors.extend(f"{file}: {key} is unknown{suggestion(key, known)}" for key in in_file.keys() - known)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for field in fields:
        try:
            origin, value = _find(field, flags, env, in_file, file)
            origins[field.key] = origin
            if value is not attrs.NOTHING:
                values[field.name] = value
        except _BadValue as error:
            errors.append(str(error))
    if errors:
        raise SettingsError("\n".join(errors))
    return LoadedSettings(cls(**values), origins, prefix)


class _BadValue(Exception):
    """A value that cannot be right."""


def _find(
    field: Field, flags: Mapping[str, Any], env: Mapping[str, str], in_file: Mapping[str, Any], file: Path | None
) -> tuple[str, Any]:
    """Source of a setting, and its value (NOTHING for the class's own default)."""
    if flags.get(field.name) is not None:
        return _checked(field, "flag", f"--{field.name.replace('_', '-')}", field.from_flag, flags[field.name])
    if field.env in env:
        return _checked(field, f"environment {field.env}", field.env, field.from_text, env[field.env])
    if field.key.lower() in in_file:
        return _checked(field, f"file {file}", f"{file}: {field.key}", field.from_value, in_file[field.key.lower()])
    if field.attribute.default is attrs.NOTHING:
        raise _BadValue(f"{field.key} is not set; set {field.env} or {field.key} in the configuration file")
    return "default", attrs.NOTHING


def _checked(field: Field, origin: str, where: str, make: Any, source: Any) -> tuple[str, Any]:
    try:
        return origin, field.check(make(source))
    except (ValueError, ArithmeticError, BaseValidationError) as error:
        details = "; ".join(detail for _, detail in flat_problems(error))
        shown = MASK if field.about.secret else repr(source)
        raise _BadValue(f"{where}: {details} (it is {shown})") from error


def file_of(name: str) -> Path | None:
    """The settings file of a name: in the working directory, else in the home directory; None if there is none."""
    return next((place for place in (Path(name), Path.home() / name) if place.is_file()), None)


def read_file(file: Path) -> Mapping[str, Any]:
    """The values of a settings file by their keys in lower case. Raises SettingsError."""
    import yaml  # noqa: PLC0415 - slow, and most programs have no file

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    if not isinstance(content, dict | None):
        raise SettingsError(f"{file}: the file must have keys and values")
    return dict(_flatten(content or {}))


def _flatten(content: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        key = f"{prefix}{name}".lower()
        if isinstance(value, dict):
            yield from _flatten(value, f"{key}.")
        elif value is not None:
            yield key, value


@attrs.frozen
class SettingsSource(Generic[C]):
    """The settings of one program: their class, the prefix of their variables, the name of the file with them.

    The file is looked for in the working directory, then in the home directory. `others` are
    variables with the prefix that are not settings.
    """

    cls: type[C]
    prefix: str
    file: str
    others: frozenset[str] = frozenset()

    def load(
        self, flags: Mapping[str, Any] | None = None, *, file: Path | None = None, running: Collection[str] = ()
    ) -> LoadedSettings[C]:
        """The settings of this process: `flags` by name (None: not given), environment, `file` or the one found, defaults.

        `running` names the settings that the system of the user on this machine gives, if no source has them
        (`terminalkit.config.running`). Raises SettingsError, which names every value that cannot be right and its origin, or the
        systems if several fit.
        """
        loaded = load(self.cls, prefix=self.prefix, flags=flags or {}, env=os.environ, file=file or file_of(self.file))
        return self._of_running_system(loaded, running) if running else loaded

    def _of_running_system(self, loaded: LoadedSettings[C], names: Collection[str]) -> LoadedSettings[C]:
        fields = fields_of(self.cls, self.prefix)
        fields_by_variable = {
            field.env: field for field in fields if field.name in names and loaded.origins[field.key] == "default"
        }
        if not fields_by_variable:
            return loaded
        from terminalkit.config.running import ADDRESSES, SeveralRunning, running_system  # noqa: PLC0415 - seldom wanted

        addresses = {
            field.env: str(getattr(loaded.values, field.name))
            for field in fields
            if field.name in ADDRESSES and loaded.origins[field.key] != "default"
        }
        try:
            system = running_system(fields_by_variable, addresses)
        except SeveralRunning as error:
            raise SettingsError(str(error)) from error
        if system is None:
            return loaded
        texts = {field: system.variables[name] for name, field in fields_by_variable.items() if name in system.variables}
        changed: Any = attrs.evolve(cast("Any", loaded.values), **{field.name: field.from_text(texts[field]) for field in texts})
        origins = {**loaded.origins, **{field.key: f"running {system}" for field in texts}}
        return attrs.evolve(loaded, values=changed, origins=origins)

    def variables(self, values: C, names: Collection[str]) -> Mapping[str, str]:
        """Return the variables of the named settings that the class has and that have a value, with the values."""
        values_by_variable = {
            field.env: getattr(values, field.name) for field in fields_of(self.cls, self.prefix) if field.name in names
        }
        return {name: str(value) for name, value in values_by_variable.items() if value is not None}

    def unknown(self, env: Mapping[str, str]) -> list[str]:
        """Return a sentence about each variable with the prefix that has no effect.

        Variables that Kubernetes sets for a service of this name are not among them.
        """
        variables = {field.env for field in fields_of(self.cls, self.prefix)} | self.others
        sentences = []
        for name in sorted(env):
            if not name.startswith(f"{self.prefix}_") or name in variables or _KUBERNETES.search(name):
                continue
            words = {variable.removeprefix(f"{self.prefix}_"): variable for variable in variables}
            close = difflib.get_close_matches(name.removeprefix(f"{self.prefix}_"), words, 1)
            question = f"; did you mean {words[close[0]]}?" if close else ""
            sentences.append(f"{name} is unknown and has no effect{question}")
        return sentences

    def describe(self, name: str) -> SettingInfo:
        """The text, variable and default of a setting, for the help of a command."""
        return describe(self.cls, name, prefix=self.prefix)

    @property
    def types(self) -> Mapping[str, Any]:
        """The types of the settings that commands may have flags for, by name: all but the secrets."""
        return {f.name: f.attribute.type for f in fields_of(self.cls, self.prefix) if not f.about.secret}
