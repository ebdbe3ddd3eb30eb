"""From the values of an answer to JSON.

cattrs takes attrs classes apart (members in the order of the class, under their JSON names, without UNSET ones); msgspec
writes the bytes: times as RFC 3339, Decimal as a number, Raw as the JSON that it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, get_args

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_unstructure_fn, override

from httpkit.fields import UNSET, Unset
from httpkit.structure import attributes_of, is_union, json_name, without_unset

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _unstructure_object(cls: Any, converter: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    overrides: dict[str, Any] = {
        attribute.name: override(
            rename=json_name(attribute),
            omit_if_default=attribute.default is UNSET,
            unstruct_hook=_member_hook(attribute.type, converter),
        )
        for attribute in attributes_of(cls)
    }
    return make_dict_unstructure_fn(cls, converter, **overrides)


def _member_hook(type_: Any, converter: cattrs.Converter) -> Callable[[Any], Any]:
    """The hook for a member: unions are resolved here, since only `X | None` needs no look at the value."""
    inner = without_unset(type_)
    if inner is not type_ and is_union(inner):
        return converter.unstructure
    return converter.get_unstructure_hook(inner)


_CONVERTER = cattrs.Converter()
_CONVERTER.register_unstructure_hook_factory(attrs.has, _unstructure_object)
_CONVERTER.register_unstructure_hook(Enum, lambda item: item.value)


def encode(value: Any) -> bytes:
    """The JSON text of a value."""
    return _ENCODER.encode(_CONVERTER.unstructure(value))


def plain(value: Any) -> Any:
    """The same as dicts, lists and scalars."""
    return msgspec.json.decode(encode(value))


def has_unset(type_: Any) -> bool:
    """Whether a member of this type may be left out."""
    return is_union(type_) and Unset in get_args(type_)
