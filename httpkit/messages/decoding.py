"""From decoded JSON, or the text of a parameter, to typed values: of classes, lists, mappings, choices.

cattrs does the work. Its hooks for primitives coerce, so `httpkit.messages.fields` replaces them. Errors are collected, not
only the first.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.errors import ClassValidationError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, mapping_structure_factory, override

from httpkit.errors import suggestion
from httpkit.messages.fields import FROM_JSON, FROM_TEXT, Hook, Rule, Spec, Unset, Wrong, spec_of

_NO_LIMITS = Rule()
_WITHOUT_TEXT = frozenset({int, float, bool, Decimal, datetime, date})
"""Types of values that have no characters: without limits no value is refused."""


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
    if not has_unset(type_):
        return type_
    return Union[tuple(part for part in get_args(type_) if part is not Unset)]  # noqa: UP007 - built at run time


def has_unset(type_: Any) -> bool:
    """Whether a member of this type may be left out."""
    return is_union(type_) and Unset in get_args(type_)


def is_union(type_: Any) -> bool:
    """Whether a type is a union."""
    return get_origin(type_) in (Union, types.UnionType)


def _choice(values: Sequence[Any], make: Callable[[Any], Any], *, of_text: bool) -> Hook:
    made, text = {str(value) if of_text else value: make(value) for value in values}, ", ".join(map(str, values))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (str, int)) or value not in made:
            meant = suggestion(value, map(str, values)) if isinstance(value, str) else ""
            raise Wrong(f"must be one of: {text}{meant}")
        return made[value]

    return structure


@lru_cache(None)
def _enum(type_: Any, *, of_text: bool) -> Hook:
    return _choice([item.value for item in type_], type_, of_text=of_text)


def _literal(type_: Any, *, of_text: bool) -> Hook:
    return _choice(get_args(type_), lambda value: value, of_text=of_text)


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
    return _enum(type_, of_text=converter is TEXT) if is_enum(type_) else converter.get_structure_hook(type_)


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


def _or_enum(hook: Hook, *, of_text: bool) -> Hook:
    """For an enumeration of strings cattrs finds the hook of strings: its subclasses count."""

    def structure(value: Any, wanted: Any) -> Any:
        return _enum(wanted, of_text=of_text)(value, wanted) if is_enum(wanted) else hook(value, wanted)

    return structure


def _converter(primitives: Mapping[type, Hook], *, of_text: bool = False) -> cattrs.Converter:
    made = cattrs.Converter(detailed_validation=True)
    for type_, hook in primitives.items():
        made.register_structure_hook(type_, _or_enum(hook, of_text=of_text))
    made.register_structure_hook_factory(attrs.has, _object)
    made.register_structure_hook_factory(_is_class(Enum), lambda type_, _: _enum(type_, of_text=of_text))
    made.register_structure_hook_factory(_is_literal, lambda type_, _: _literal(type_, of_text=of_text))
    made.register_structure_hook_factory(_is_list, _list)
    made.register_structure_hook_factory(_is_mapping, _mapping)
    made.register_structure_hook_factory(has_unset, _present)
    return made


JSON = _converter(FROM_JSON)
"""Structures decoded JSON."""


TEXT = _converter(FROM_TEXT, of_text=True)
"""Structures the text of parameters."""


def flat_problems(error: BaseException, pointer: str = "#") -> Iterator[tuple[str, str]]:
    """The pointer and the text of every single thing that was wrong."""
    if isinstance(error, ClassValidationError):
        with_notes, others = error.group_exceptions()
        names = {attribute.name: json_name(attribute) for attribute in attrs.fields(error.cl)}
        for inner, note in with_notes:
            yield from flat_problems(inner, f"{pointer}/{escape(names[note.name])}")
        for inner in others:
            yield from flat_problems(inner, pointer)
    elif isinstance(error, IterableValidationError):
        items, others = error.group_exceptions()
        for inner, index in items:
            yield from flat_problems(inner, f"{pointer}/{escape(str(index.index))}")
        for inner in others:
            yield from flat_problems(inner, pointer)
    elif isinstance(error, KeyError):
        yield pointer, "is required"
    else:
        yield pointer, str(error)


def escape(name: str) -> str:
    """A member's name as a token of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
