"""The CSV form of a list (RFC 4180), for a client that asks for `text/csv`: one line per row, the members as columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from httpkit.messages.decoding import attributes_of, json_name, without_unset
from httpkit.messages.encoding import plain, weights

MEDIA_TYPE = "text/csv"

_MARK = "'"
"""In front of a text, it makes a cell text for a spreadsheet."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula may begin, in full width too."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line breaks, and characters that change the direction of text."""


def is_wanted(accept: str | None) -> bool:
    """Whether an Accept header (RFC 9110, section 12.5.1) prefers CSV to JSON."""
    if accept is None or MEDIA_TYPE not in accept:
        return False
    liked = weights(accept)
    json = liked.get("application/json", liked.get("application/*", liked.get("*/*", 0.0)))
    return liked.get(MEDIA_TYPE, 0.0) > 0 and liked[MEDIA_TYPE] >= json


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
