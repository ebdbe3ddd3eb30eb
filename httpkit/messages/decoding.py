"""From decoded JSON, or the text of a parameter, to typed values, without guessing: a string is no number, `1` is no boolean.

cattrs does the work; its hooks for primitives coerce, so they are replaced here. Errors are collected, not only the first.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from math import isinf
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.errors import ClassValidationError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, mapping_structure_factory, override

from httpkit.messages.fields import Rule, Spec, Unset, spec_of

Hook = Callable[[Any, Any], Any]

_LARGEST = 2**63 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_FLOAT = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_NO_LIMITS = Rule()
_WITHOUT_TEXT = frozenset({int, float, bool, Decimal, datetime, date})
"""Types of values that have no characters: without limits no value is refused."""


class Wrong(ValueError):
    """A value that is not of its type or not within its limits; the text is for the user."""


def attributes_of(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    """The fields of an attrs class, their types resolved. Raises TypeError for another class, NameError for an unknown type."""
    if not attrs.has(cls):
        raise TypeError(f"{cls!r} is not an attrs class")
    return tuple(attrs.fields(attrs.resolve_types(cls)))


def json_name(attribute: attrs.Attribute[Any]) -> str:
    """The name of a member in JSON."""
    return spec_of(attribute).name or attribute.name


def without_unset(type_: Any) -> Any:
    """The type of a member that is present."""
    if not is_union(type_) or Unset not in get_args(type_):
        return type_
    return Union[tuple(part for part in get_args(type_) if part is not Unset)]  # noqa: UP007 - built at run time


def is_union(type_: Any) -> bool:
    """Whether a type is a union."""
    return get_origin(type_) in (Union, types.UnionType)


def _whole(value: Any, _: Any) -> int:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Wrong("must be a whole number")
    if abs(value) > _LARGEST:
        raise Wrong("must be a 64-bit number")
    return value


def _decimal(value: Any, _: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise Wrong("must be a number")
    return Decimal(value)


def _float(value: Any, type_: Any) -> float:
    return float(_decimal(value, type_))


def _string(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("must be a string")
    return value


def _boolean(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong("must be true or false")
    return value


def _nothing(value: Any, _: Any) -> None:
    if value is not None:
        raise Wrong("must be null")


def parse_time(value: Any, _: Any = None) -> datetime:
    """A time in RFC 3339 form (RFC 3339, section 5.6), in UTC.

    Raises ValueError for any other value, and for a time that has no counterpart in UTC: those at the ends of the calendar.
    """
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Wrong("must be a time in RFC 3339 form") from None
    if found.tzinfo is None or "T" not in value.upper():
        raise Wrong("must be a time in RFC 3339 form, with its offset from UTC")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise Wrong("must be a time of the years 1 to 9999 in UTC") from None


def _day(value: Any, _: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise Wrong("must be a date, like 2026-01-31") from None


def _choice(values: Sequence[Any], make: Callable[[Any], Any]) -> Hook:
    made, text = {value: make(value) for value in values}, ", ".join(map(str, values))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (str, int)) or value not in made:
            close = get_close_matches(value, map(str, values), n=1) if isinstance(value, str) else []
            raise Wrong(f"must be one of: {text}" + (f"; did you mean {close[0]}?" if close else ""))
        return made[value]

    return structure


@lru_cache(None)
def _enum(type_: Any, _: cattrs.Converter | None = None) -> Hook:
    return _choice([item.value for item in type_], type_)


def _literal(type_: Any, _: cattrs.Converter) -> Hook:
    return _choice(get_args(type_), lambda value: value)


def _list(type_: Any, converter: cattrs.Converter) -> Hook:
    make = tuple if get_origin(type_) in (tuple, Sequence) else list
    list_type: Any = types.GenericAlias(list, get_args(type_)[:1])
    items = list_structure_factory(list_type, converter)

    def structure(value: Any, wanted: Any) -> Any:
        if not isinstance(value, list):
            raise Wrong("must be a list")
        return make(items(value, wanted))

    return structure


def _mapping(type_: Any, converter: cattrs.Converter) -> Hook:
    members = mapping_structure_factory(type_, converter, detailed_validation=True)

    def structure(value: Any, wanted: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("must be an object")
        return members(value, wanted)

    return structure


def _present(type_: Any, converter: cattrs.Converter) -> Hook:
    inner = without_unset(type_)
    hook = converter.get_structure_hook(inner)
    return lambda value, _: hook(value, inner)


def _object(type_: Any, converter: cattrs.Converter) -> Hook:
    overrides: dict[str, Any] = {
        attribute.name: override(rename=json_name(attribute), struct_hook=hook_for(attribute, converter))
        for attribute in attributes_of(type_)
    }
    structure_members = make_dict_structure_fn(type_, converter, **overrides)

    def structure(value: Any, wanted: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("must be an object")
        return structure_members(value, wanted)

    return structure


def hook_for(attribute: attrs.Attribute[Any], converter: cattrs.Converter) -> Hook:
    """The hook that makes the value of a field, within its limits."""
    spec, type_ = spec_of(attribute), attribute.type
    if type_ is bytes and spec.parse is None:  # as it came; no rule is about it
        return lambda value, _: value
    base, broken = _base(spec, type_, converter), spec.rule.broken
    if is_enum(type_) or (spec.rule == _NO_LIMITS and type_ in _WITHOUT_TEXT):
        return base

    def structure(value: Any, _: Any) -> Any:
        made = base(value, type_)
        if (found := broken(made)) is not None:
            raise Wrong(found)
        return made

    return structure


def _base(spec: Spec, type_: Any, converter: cattrs.Converter) -> Hook:
    if (parse := spec.parse) is not None:
        return lambda value, _: parse(value)
    return _enum(type_) if is_enum(type_) else converter.get_structure_hook(type_)


def is_enum(type_: Any) -> bool:
    """Whether a type is an enumeration."""
    return isinstance(type_, type) and issubclass(type_, Enum)


def _is_list(type_: Any) -> bool:
    return get_origin(type_) in (list, tuple, Sequence) and get_args(type_)[1:] in ((), (...,))


def _is_mapping(type_: Any) -> bool:
    return get_origin(type_) in (dict, Mapping)


def _is_class(of: type) -> Callable[[Any], bool]:
    return lambda type_: isinstance(type_, type) and issubclass(type_, of)


def _is_literal(type_: Any) -> bool:
    origin: Any = get_origin(type_)
    return origin is Literal


def _has_unset(type_: Any) -> bool:
    return is_union(type_) and Unset in get_args(type_)


def _or_enum(hook: Hook) -> Hook:
    """For an enumeration of strings cattrs finds the hook of strings: its subclasses count."""

    def structure(value: Any, wanted: Any) -> Any:
        return _enum(wanted)(value, wanted) if is_enum(wanted) else hook(value, wanted)

    return structure


def _converter(primitives: Mapping[type, Hook]) -> cattrs.Converter:
    made = cattrs.Converter(detailed_validation=True)
    for type_, hook in primitives.items():
        made.register_structure_hook(type_, _or_enum(hook))
    made.register_structure_hook_factory(attrs.has, _object)
    made.register_structure_hook_factory(_is_class(Enum), _enum)
    made.register_structure_hook_factory(_is_literal, _literal)
    made.register_structure_hook_factory(_is_list, _list)
    made.register_structure_hook_factory(_is_mapping, _mapping)
    made.register_structure_hook_factory(_has_unset, _present)
    return made


JSON = _converter(
    {
        str: _string,
        int: _whole,
        float: _float,
        bool: _boolean,
        Decimal: _decimal,
        datetime: parse_time,
        date: _day,
        type(None): _nothing,
    }
)
"""Structures decoded JSON."""


def _whole_text(value: str, type_: Any) -> int:
    if not _WHOLE.fullmatch(value):
        raise Wrong("must be a whole number")
    return _whole(int(value), type_)


def _decimal_text(value: str, _: Any) -> Decimal:
    if not _DECIMAL.fullmatch(value):
        raise Wrong("must be a number")
    return Decimal(value)


def _float_text(value: str, _: Any) -> float:
    if not _FLOAT.fullmatch(value) or isinf(found := float(value)):
        raise Wrong("must be a number")
    return found


def _boolean_text(value: str, _: Any) -> bool:
    if value not in _BOOLEANS:
        raise Wrong("must be true or false")
    return _BOOLEANS[value]


TEXT = _converter(
    {
        str: _string,
        int: _whole_text,
        float: _float_text,
        bool: _boolean_text,
        Decimal: _decimal_text,
        datetime: parse_time,
        date: _day,
    }
)
"""Structures the text of parameters."""


def flatten(error: BaseException, pointer: str = "#") -> Iterator[tuple[str, str]]:
    """The pointer and the text of every single thing that was wrong."""
    if isinstance(error, ClassValidationError):
        with_notes, others = error.group_exceptions()
        names = {attribute.name: json_name(attribute) for attribute in attrs.fields(error.cl)}
        for inner, note in with_notes:
            yield from flatten(inner, f"{pointer}/{escape(names[note.name])}")
        for inner in others:
            yield from flatten(inner, pointer)
    elif isinstance(error, IterableValidationError):
        items, others = error.group_exceptions()
        for inner, index in items:
            yield from flatten(inner, f"{pointer}/{escape(str(index.index))}")
        for inner in others:
            yield from flatten(inner, pointer)
    elif isinstance(error, KeyError):
        yield pointer, "is required"
    else:
        yield pointer, str(error)


def escape(name: str) -> str:
    """A member's name as a token of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
