"""JSON Schema (2020-12) of Python types, as OpenAPI 3.1 wants it. attrs classes become components, referred to by name."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import attrs
import msgspec

from httpkit.messages.decoding import attributes_of, has_unset, is_union, json_name, without_unset
from httpkit.messages.encoding import plain
from httpkit.messages.fields import PRINTABLE, PRINTABLE_LINES, UNSET, Rule, Source, spec_of

Schema = dict[str, Any]
Mode = Literal["request", "answer"]

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    msgspec.Raw: {},
}
_BARE = Rule()
"""The rule of values that no rule names."""


def description_of(thing: Any) -> str | None:
    """The docstring of a class or function, as text."""
    return inspect.cleandoc(thing.__doc__) if thing.__doc__ else None


class Schemas:
    """The components of one document, filled as types are asked for."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._classes: dict[str, tuple[type, Mode]] = {}

    def of(self, type_: Any, mode: Mode) -> Schema:
        """The schema of a type. Raises TypeError for one that JSON has no word for."""
        type_ = without_unset(type_)
        if isinstance(type_, type) and attrs.has(type_):
            return {"$ref": f"#/components/schemas/{self._component(type_, mode)}"}
        if type_ in _SCALARS:
            return dict(_SCALARS[type_])
        if isinstance(type_, type) and issubclass(type_, Enum):
            return _choice([item.value for item in type_])
        if isinstance(type_, types.GenericAlias) or get_origin(type_) is not None:
            return self._generic(type_, get_origin(type_), get_args(type_), mode)
        raise TypeError(f"no JSON schema for {type_!r}")

    def _generic(self, type_: Any, origin: Any, arguments: tuple[Any, ...], mode: Mode) -> Schema:
        if origin is Literal:
            return _choice(list(arguments))
        if is_union(type_):
            parts = [self.of(part, mode) for part in arguments]
            if all(set(part) == {"type"} for part in parts):
                return {"type": [part["type"] for part in parts]}
            return {"anyOf": parts}
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self.of(arguments[0], mode)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1], mode)}
        raise TypeError(f"no JSON schema for {type_!r}")

    def field(self, attribute: attrs.Attribute[Any], mode: Mode) -> Schema:
        """The schema of a field, with its limits, description, example and default."""
        spec = spec_of(attribute)
        schema = dict(spec.schema) if spec.schema is not None else self.of(attribute.type, mode)
        schema = _limited(schema, spec.rule, is_checked=mode == "request" and spec.source is not Source.PAYLOAD)
        extra: Schema = {}
        if spec.description is not None:
            extra["description"] = spec.description
        if spec.example is not None:
            extra["examples"] = [plain(spec.example)]
        if mode == "request" and attribute.default not in (attrs.NOTHING, UNSET, None) and _is_plain(attribute.default):
            extra["default"] = plain(attribute.default)
        return schema | extra

    def object(self, cls: type, mode: Mode, *, closed: bool = False) -> Schema:
        """The schema of the members of a class. `closed`: other members are refused."""
        members = [attribute for attribute in attributes_of(cls) if spec_of(attribute).source is Source.MEMBER]
        schema: Schema = {
            "type": "object",
            "properties": {json_name(attribute): self.field(attribute, mode) for attribute in members},
        }
        required = [json_name(attribute) for attribute in members if _is_required(attribute, mode)]
        if required:
            schema["required"] = required
        if (text := description_of(cls)) is not None:
            schema["description"] = text
        if closed:
            schema["additionalProperties"] = False
        return schema

    def _component(self, cls: type, mode: Mode) -> str:
        name = cls.__name__
        known = self._classes.get(name)
        if known is not None and known[0] is cls and known[1] != mode:
            name += "Input" if mode == "request" else "Answer"
            known = self._classes.get(name)
        if known is None:
            self._classes[name] = (cls, mode)
            self.components[name] = {}
            self.components[name] = self.object(cls, mode)
        elif known != (cls, mode):
            raise ValueError(f"two classes are called {name}: {known[0]!r} and {cls!r}")
        return name


def _is_required(attribute: attrs.Attribute[Any], mode: Mode) -> bool:
    if mode == "request":
        return attribute.default is attrs.NOTHING
    return not has_unset(attribute.type)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, Enum, tuple))


def _choice(values: list[Any]) -> Schema:
    return {"type": "string" if all(isinstance(value, str) for value in values) else "integer", "enum": values}


def _limited(schema: Schema, rule: Rule, *, is_checked: bool) -> Schema:
    """The schema of a value within the limits of a rule, with the values inside of it. `is_checked`: texts have no controls."""
    if "anyOf" in schema:
        return schema | {"anyOf": [_limited(part, rule, is_checked=is_checked) for part in schema["anyOf"]]}
    if schema.get("type") == "null" or "$ref" in schema:
        return schema
    schema = schema | rule.schema(_json_type(schema))
    if is_checked and _is_any_text(schema):
        schema["pattern"] = PRINTABLE_LINES if rule.multiline else PRINTABLE
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            schema[inside] = _limited(schema[inside], rule.items or _BARE, is_checked=is_checked)
    if is_checked and isinstance(schema.get("additionalProperties"), dict):
        schema["propertyNames"] = {"pattern": PRINTABLE}
    return schema


def _is_any_text(schema: Schema) -> bool:
    """Whether the schema does not restrict the text yet."""
    return _json_type(schema) == "string" and not schema.keys() & {"pattern", "format", "enum", "const"}


def _json_type(schema: Mapping[str, Any]) -> object:
    found = schema.get("type")
    return next((name for name in found if name != "null"), None) if isinstance(found, list) else found
