"""The values that requests and answers of the pantry have in common: quantities, codes, texts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from httpkit.messages.fields import UNSET, member
from pantry.domain import ean13
from pantry.domain.quantity import LARGEST, number, thousandths

SMALLEST = 0.001
_LARGEST = number(LARGEST)
_NAMING = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"


def _thousandths(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")  # noqa: TRY004 - a wrong value of a request is a ValueError
    return thousandths(Decimal(value))


def _positive(value: Any) -> int:
    found = _thousandths(value)
    if found <= 0:
        raise ValueError("stock level must be greater than 0")
    return found


def _not_negative(value: Any) -> int:
    found = _thousandths(value)
    if found < 0:
        raise ValueError("must not be negative")
    return found


def quantity(**how: Any) -> Any:
    """A member that is a quantity greater than 0, in thousandths inside."""
    schema = {"type": "number", "minimum": SMALLEST, "maximum": _LARGEST, "multipleOf": SMALLEST}
    return member(parse=_positive, schema=schema, **how)


def amount(**how: Any) -> Any:
    """A member that is a quantity of 0 or more, in thousandths inside."""
    schema = {"type": "number", "minimum": 0, "maximum": _LARGEST, "multipleOf": SMALLEST}
    return member(parse=_not_negative, schema=schema, **how)


def _named(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - a wrong value of a request is a ValueError
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def naming(max_length: int, **how: Any) -> Any:
    """A member that names something: text that is not empty and has more than spaces."""
    return member(parse=_named, schema={"type": "string", "minLength": 1, "pattern": _NAMING}, max_length=max_length, **how)


def checked_ean13(value: Any) -> str:
    """A code with the right check digit. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - a wrong value of a request is a ValueError
    if (wrong := ean13.problem(value)) is not None:
        raise ValueError(wrong)
    return value


EAN13_SCHEMA = {"type": "string", "format": "ean13", "pattern": "^[0-9]{13}$"}
EXAMPLE = "4006381333931"
CURSOR = {"type": "string", "format": "cursor", "maxLength": 4096}
"""What an earlier page's `Link: rel="next"` has, of a list by name."""
MOVEMENT_CURSOR = {"type": "string", "format": "movement-cursor", "maxLength": 4096}
"""The same, of a list of movements."""
CATEGORY_ID = {"type": ["string", "null"], "format": "category-id"}
"""A category that there is; empty or null for none."""


def or_unset(text: str | None) -> Any:
    """A text, or UNSET where it is empty: an optional member that is left out then."""
    return text or UNSET
