"""From the values of an answer to JSON.

msgspec writes the bytes: times as RFC 3339, Decimal as a number, Raw as the JSON that it holds. It also takes messages apart
(members in the order of the class, without UNSET ones) if all members keep their names in JSON. If a member has another name, or
has no fixed type, cattrs takes the message apart first, at several times the cost.

The headers by which a client names the forms that it takes are read here as well.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_unstructure_fn, override

from httpkit.messages.fields import UNSET, Unset, attributes_of, is_union, json_name, without_unset

_WEIGHT = re.compile(r"[01](\.\d{0,3})?")
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


_SCALARS = frozenset({str, int, float, bool, type(None), Unset, datetime, date, Decimal, msgspec.Raw})
_LISTS = frozenset({list, tuple, Sequence})


@lru_cache(None)
def _is_plain(type_: Any) -> bool:
    """Whether msgspec alone writes values of this type as they should be; not so with slots, which have no order."""
    if attrs.has(type_):
        members = attributes_of(type_)
        types: list[Any] = [member.type for member in members]
        return not hasattr(type_, "__slots__") and all(json_name(m) == m.name for m in members) and all(map(_is_plain, types))
    if is_union(type_) or get_origin(type_) in _LISTS:
        return all(part is ... or _is_plain(part) for part in get_args(type_))
    return type_ in _SCALARS or (isinstance(type_, type) and issubclass(type_, Enum))


def encode(value: Any) -> bytes:
    """The JSON text of a value."""
    types = set(map(type, value)) if isinstance(value, list) else {type(value)}
    return _ENCODER.encode(value if all(map(_is_plain, types)) else _CONVERTER.unstructure(value))


def weights(preference: str) -> dict[str, float]:
    """The names in a header `Accept` or `Accept-Encoding`, in lower case, with their weights (RFC 9110, section 12.4.2).

    A weight that cannot be read is 0.
    """
    return dict(map(_weighted, preference.split(",")))


@lru_cache(256)
def takes_gzip(preference: str | None) -> bool:
    """Whether a client with this header `Accept-Encoding` takes gzip (RFC 9110, section 12.5.3); None: it has no such header."""
    if preference is None:
        return False
    coded = weights(preference)
    return coded.get("gzip", coded.get("*", 0.0)) > 0


def _weighted(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weight = next((piece[2:].strip() for piece in parameters if piece.startswith("q=")), "1")
    return name, float(weight) if _WEIGHT.fullmatch(weight) else 0.0


def plain(value: Any) -> Any:
    """The same as dicts, lists and scalars."""
    return msgspec.json.decode(encode(value))


CSV_MEDIA = "text/csv"

_MARK = "'"
"""In front of a text, it makes a cell text for a spreadsheet."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula may begin, in full width too."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line breaks, and characters that change the direction of text."""


def wants_csv(accept: str | None) -> bool:
    """Whether an Accept header (RFC 9110, section 12.5.1) prefers CSV to JSON."""
    if accept is None or CSV_MEDIA not in accept:
        return False
    liked = weights(accept)
    json = liked.get("application/json", liked.get("application/*", liked.get("*/*", 0.0)))
    return liked.get(CSV_MEDIA, 0.0) > 0 and liked[CSV_MEDIA] >= json


def encode_csv(cls: type, rows: Sequence[Any]) -> bytes:
    """The rows, instances of an attrs class, as UTF-8 text. Members of objects inside are columns too: `product.name`.

    The text is safe to open: a cell that a spreadsheet would take for a formula begins with `'`, and control characters, escape
    sequences of terminals among them, are replaced by U+FFFD. A text with spaces around it begins with `'` too, so that a reader
    keeps them. `decode_cell` takes the `'` away.
    """
    names = list(_columns(cls, ""))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(dict(_cells(row, "")) for row in plain(rows))
    return text.getvalue().encode()


def decode_cell(cell: str) -> str:
    """The text of a cell of `encode_csv`, or of another table: without the `'` of `encode_csv`, or else the spaces around it."""
    rest = cell.removeprefix(_MARK)
    return rest if rest != cell and _is_marked(rest) else cell.strip()


def _columns(cls: type, prefix: str) -> Iterator[str]:
    for attribute in attributes_of(cls):
        type_: Any = without_unset(attribute.type)
        if isinstance(type_, type) and attrs.has(type_):
            yield from _columns(type_, f"{prefix}{json_name(attribute)}.")
        else:
            yield f"{prefix}{json_name(attribute)}"


def _cells(row: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _cells(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _inert(value) if isinstance(value, str) else str(value)


def _inert(text: str) -> str:
    text = _CONTROL.sub("\ufffd", text)
    return f"{_MARK}{text}" if _is_marked(text) else text


def _is_marked(text: str) -> bool:
    """Whether a text has a mark in its cell. One that would be taken for a marked one has another mark."""
    bare = text.lstrip(_MARK)
    is_changed = text != text.strip() or bare != bare.lstrip()
    return is_changed or (bare.startswith(_FORMULA) and _NUMBER.fullmatch(bare) is None)
