"""Fields of requests and answers, and converters that make their values from JSON and from texts."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from math import isinf
from typing import Any, Literal, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.errors import ClassValidationError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, mapping_structure_factory, override
from msgspec import UNSET
from msgspec import UnsetType as Unset

from httpkit.errors import suggestion


def _moment(text: str) -> datetime:
    return parse_time(text.replace(" ", "+"))  # the plus of an offset, if it was not escaped


def moment(*, name: str | None = None, description: str, empty: bool = False) -> Any:
    """A query parameter that is a time, with its offset from UTC. `empty`: see `query`."""
    schema = {"type": "string", "format": "date-time"}
    return query(name=name, default=None, parse=_moment, schema=schema, description=f"{description}; RFC 3339", empty=empty)


Hook = Callable[[Any, Any], Any]
"""Takes a value and the wanted type, and returns the value of that type. Raises Wrong."""

_LARGEST = 2**63 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_FLOAT = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Wrong(ValueError):
    """A value that is not of its type or not within its limits; the text is for the user."""


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
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Wrong("must be a time in RFC 3339 form") from None
    if moment.tzinfo is None or "T" not in value.upper():
        raise Wrong("must be a time in RFC 3339 form, with its offset from UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise Wrong("must be a time of the years 1 to 9999 in UTC") from None


def _day(value: Any, _: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise Wrong("must be a date, like 2026-01-31") from None


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


FROM_JSON: Mapping[type, Hook] = {
    str: _string,
    int: _whole,
    float: _float,
    bool: _boolean,
    Decimal: _decimal,
    datetime: parse_time,
    date: _day,
    type(None): _nothing,
}
"""The hooks for values of decoded JSON."""

FROM_TEXT: Mapping[type, Hook] = {
    str: _string,
    int: _whole_text,
    float: _float_text,
    bool: _boolean_text,
    Decimal: _decimal_text,
    datetime: parse_time,
    date: _day,
}
"""The hooks for the text of parameters."""


__all__ = ["UNSET", "Rule", "Source", "Spec", "Unset", "header", "member", "message", "path", "payload", "query", "spec_of"]

T = TypeVar("T")
Number = int | float | Decimal
_KEY = "httpkit"
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
PRINTABLE = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""Text without control characters, in the notation of JSON Schema; surrogates are not characters of it."""
PRINTABLE_LINES = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
"""The same with line breaks and tabs."""
_UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Source(Enum):
    """The part of a request that a field comes from."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    MEMBER = "member"
    """A member of the JSON object that is the body, or of an object inside it."""
    PAYLOAD = "payload"
    """The whole body: bytes as they came, text, or any JSON value, according to the type of the field."""


@attrs.frozen(kw_only=True)
class Rule:
    """Limits of a value. Lengths are in characters for text and in items for lists; `places` are decimal places.

    Control characters and lone surrogates are never allowed in text; line breaks and tabs only where `multiline` is set. `form`
    names the texts that fit the `pattern`, and completes the sentence "must be ...".
    """

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    form: str | None = None
    ge: Number | None = None
    gt: Number | None = None
    le: Number | None = None
    lt: Number | None = None
    places: int | None = None
    multiline: bool = False
    items: Rule | None = None

    def broken(self, value: Any) -> str | None:
        """Return the fault of a value of the right type, or None."""
        if isinstance(value, Enum):
            return None
        if isinstance(value, str):
            return self._broken_text(value) or self._broken_length(value, "character")
        if isinstance(value, (int, float, Decimal)):
            return self._broken_number(value)
        if isinstance(value, (list, tuple)):
            return self._broken_length(value, "item") or self._broken_items(enumerate(value))
        if isinstance(value, dict):
            keys = ((key, key) for key in value)
            return self._broken_length(value, "member") or _BARE._broken_items(keys) or self._broken_items(value.items())
        return None

    def _broken_text(self, value: str) -> str | None:
        if (_UNPRINTABLE_IN_TEXT if self.multiline else _UNPRINTABLE).search(value):
            return "must not have control characters"
        if self.pattern is not None and not re.search(self.pattern, value):
            return f"must be {self.form}" if self.form else "must have another form"
        return None

    def _broken_length(self, value: Sized, unit: str) -> str | None:
        if self.min_length is not None and len(value) < self.min_length:
            return "must not be empty" if self.min_length == 1 else f"must have at least {self.min_length} {unit}s"
        if self.max_length is not None and len(value) > self.max_length:
            return f"must have at most {self.max_length} {unit}{'s' if self.max_length != 1 else ''}"
        return None

    def _broken_number(self, value: Number) -> str | None:
        if self.ge is not None and value < self.ge:
            return f"must be at least {self.ge}"
        if self.gt is not None and value <= self.gt:
            return f"must be greater than {self.gt}"
        if self.le is not None and value > self.le:
            return f"must be at most {self.le}"
        if self.lt is not None and value >= self.lt:
            return f"must be less than {self.lt}"
        if self.places is not None and isinstance(value, Decimal) and _places(value) > self.places:
            return f"must have at most {self.places} decimal places"
        return None

    def _broken_items(self, values: Iterable[tuple[object, Any]]) -> str | None:
        rule = self.items or _BARE
        for name, value in values:
            if (found := rule.broken(value)) is not None:
                return f"item {name!r} {found}"
        return None

    def schema(self, kind: object) -> dict[str, Any]:
        """The same in JSON Schema, for a value of this JSON type (`string`, `array`, …)."""
        suffix = {"array": "Items", "object": "Properties"}.get(str(kind), "Length")
        words: dict[str, Any] = {
            f"min{suffix}": self.min_length,
            f"max{suffix}": self.max_length,
            "pattern": self.pattern,
            "minimum": self.ge,
            "exclusiveMinimum": self.gt,
            "maximum": self.le,
            "exclusiveMaximum": self.lt,
            "multipleOf": None if self.places is None else float(Decimal(1).scaleb(-self.places)),
        }
        return {key: float(value) if isinstance(value, Decimal) else value for key, value in words.items() if value is not None}


_BARE = Rule()


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


@attrs.frozen(kw_only=True)
class Spec:
    """The declaration of a field, without its type.

    `name` is the outside name, if it differs from the name of the attribute. `parse` makes the value from the JSON value or the
    text of a parameter and raises ValueError with a text for the user. `schema` describes its values. `media` is the
    media type of a payload, `otherwise` the status if a path parameter cannot be right. `personal`: see `member`. `empty`: see
    `query`.
    """

    source: Source = Source.MEMBER
    name: str | None = None
    description: str | None = None
    example: Any = None
    rule: Rule = attrs.field(factory=Rule)
    parse: Callable[[Any], Any] | None = None
    schema: Mapping[str, Any] | None = None
    media: tuple[str, ...] = ()
    otherwise: HTTPStatus = HTTPStatus.BAD_REQUEST
    personal: bool = False
    empty: bool = False


def spec_of(attribute: attrs.Attribute[Any]) -> Spec:
    """Return the declaration of a field of an attrs class; a plain field is a member without limits."""
    return cast("Spec", attribute.metadata.get(_KEY, _PLAIN))


_PLAIN = Spec()


def _field(spec: Spec, default: Any) -> Any:
    return attrs.field(default=default, metadata={_KEY: spec})


def path(
    *,
    name: str | None = None,
    description: str | None = None,
    example: Any = None,
    parse: Callable[[str], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    otherwise: HTTPStatus = HTTPStatus.NOT_FOUND,
    **limits: Any,
) -> Any:
    """A parameter in the path. A value that breaks its limits is answered with `otherwise`, since it cannot name a resource."""
    spec = Spec(
        source=Source.PATH,
        name=name,
        description=description,
        example=example,
        rule=Rule(**limits),
        parse=parse,
        schema=schema,
        otherwise=otherwise,
    )
    return _field(spec, attrs.NOTHING)


def query(
    *,
    default: Any = attrs.NOTHING,
    name: str | None = None,
    description: str | None = None,
    example: Any = None,
    parse: Callable[[str], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    empty: bool = False,
    **limits: Any,
) -> Any:
    """A query parameter. A list or tuple type takes a repeated parameter; given more than once otherwise, it is refused.

    `empty`: an empty text counts as a parameter that is left out.
    """
    spec = Spec(
        source=Source.QUERY,
        name=name,
        description=description,
        example=example,
        rule=Rule(**limits),
        parse=parse,
        schema=schema,
        empty=empty,
    )
    return _field(spec, default)


def header(
    name: str,
    *,
    default: Any = attrs.NOTHING,
    description: str | None = None,
    parse: Callable[[str], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    **limits: Any,
) -> Any:
    """A request header, by its name on the wire."""
    rule = Rule(**limits)
    spec = Spec(source=Source.HEADER, name=name, description=description, rule=rule, parse=parse, schema=schema)
    return _field(spec, default)


def member(
    *,
    default: Any = attrs.NOTHING,
    name: str | None = None,
    description: str | None = None,
    example: Any = None,
    parse: Callable[[Any], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    personal: bool = False,
    **limits: Any,
) -> Any:
    """A member of the JSON body, of an object in it, or of an answer. `name` is its JSON name (`StatusReason`).

    What is `personal` is left out of the digest that is stored with an idempotency key: short texts can be guessed from it.
    """
    rule = Rule(**limits)
    spec = Spec(name=name, description=description, example=example, rule=rule, parse=parse, schema=schema, personal=personal)
    return _field(spec, default)


def payload(
    *media: str,
    default: Any = attrs.NOTHING,
    description: str | None = None,
    parse: Callable[[Any], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    **limits: Any,
) -> Any:
    """The whole body: the bytes or the UTF-8 text for a field of type `bytes` or `str`, else the JSON value.

    `media` names the accepted media types (`text/csv`, or `*/*` for any). The default is JSON.
    """
    rule = Rule(**limits)
    spec = Spec(source=Source.PAYLOAD, description=description, rule=rule, parse=parse, schema=schema, media=media)
    return _field(spec, default)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(path, query, header, member, payload))
def message(cls: type[T]) -> type[T]:
    """Make a class a request or an answer: a frozen attrs class with keyword-only fields.

    Without slots, which have no order that a JSON encoder could write them in.
    """
    return attrs.frozen(cls, kw_only=True, slots=False)


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
    choices, text = {str(value) if of_text else value: make(value) for value in values}, ", ".join(map(str, values))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (str, int)) or value not in choices:
            meant = suggestion(value, map(str, values)) if isinstance(value, str) else ""
            raise Wrong(f"must be one of: {text}{meant}")
        return choices[value]

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
    converter = cattrs.Converter(detailed_validation=True)
    for type_, hook in primitives.items():
        converter.register_structure_hook(type_, _or_enum(hook, of_text=of_text))
    converter.register_structure_hook_factory(attrs.has, _object)
    converter.register_structure_hook_factory(_is_class(Enum), lambda type_, _: _enum(type_, of_text=of_text))
    converter.register_structure_hook_factory(_is_literal, lambda type_, _: _literal(type_, of_text=of_text))
    converter.register_structure_hook_factory(_is_list, _list)
    converter.register_structure_hook_factory(_is_mapping, _mapping)
    converter.register_structure_hook_factory(has_unset, _present)
    return converter


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
