"""From decoded JSON, or the text of a parameter, to a primitive, without guessing: a string is no number, `1` is no boolean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf
from typing import Any

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
