"""Fields of settings: how each is read from a text, and checked."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, dataclass_transform, get_args, get_origin

import attrs

from httpkit.messages.decoding import JSON, TEXT, attributes_of, is_enum
from httpkit.messages.fields import Rule, Wrong

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
    about = Setting(env=env, help=help, secret=secret, duration=duration, rule=Rule(**limits))
    return attrs.field(default=default, metadata={_KEY: about})


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

    def from_flag(self, given: Any) -> Any:
        """The value that a flag means: a text as in the environment, texts of a flag that is repeated, or a value."""
        if isinstance(given, str):
            return self.from_text(given)
        if isinstance(given, tuple) and all(isinstance(one, str) for one in given):
            return TEXT.structure(list(given), self._type)
        return self.from_value(given)

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
        if (found := self.about.rule.broken(value)) is not None:
            raise Wrong(found)
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
