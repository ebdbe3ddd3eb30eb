"""The values that requests and answers of the pantry have in common: quantities, codes, texts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from httpkit import UNSET, FieldError, Invalid, member, query
from pantry.domain import ean13, gtin
from pantry.domain.errors import BadInput
from pantry.domain.ledger import LARGEST_FACTOR, SMALLEST_FACTOR
from pantry.domain.naming import INVISIBLE, look
from pantry.domain.quantity import LARGEST, number, thousandths
from pantry.readmodel.views import period_of

SMALLEST = 0.001
_LARGEST = number(LARGEST)
_NAMING = rf"^[^\u0000-\u001f\u007f-\u009f]*[^\s{INVISIBLE}][^\u0000-\u001f\u007f-\u009f]*$"


def _at_least(least: int, otherwise: str) -> Callable[[Any], int]:
    """A parser of quantities of at least `least` thousandths; it raises ValueError with the text `otherwise` for less."""

    def checked(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise ValueError("must be a number")  # noqa: TRY004 - a wrong value of a request is a ValueError
        found = thousandths(Decimal(value))
        if found < least:
            raise ValueError(otherwise)
        return found

    return checked


_positive = _at_least(1, "stock level must be greater than 0")
_not_negative = _at_least(0, "must not be negative")


def quantity(**how: Any) -> Any:
    """A member that is a quantity greater than 0, in thousandths inside."""
    schema = {"type": "number", "minimum": SMALLEST, "maximum": _LARGEST, "multipleOf": SMALLEST}
    return member(parse=_positive, schema=schema, **how)


def amount(*, null: int | None = None, **how: Any) -> Any:
    """A member that is a quantity of 0 or more, in thousandths inside. `null`: the quantity that null means, if it is taken."""
    schema: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": _LARGEST, "multipleOf": SMALLEST}
    if null is None:
        return member(parse=_not_negative, schema=schema, **how)
    schema["type"] = ["number", "null"]
    return member(parse=lambda value: null if value is None else _not_negative(value), schema=schema, **how)


def _factor(value: Any) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")  # noqa: TRY004 - a wrong value of a request is a ValueError
    factor = Decimal(value)
    if not factor.is_finite() or not SMALLEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise ValueError(f"must be from {SMALLEST_FACTOR:f} to {LARGEST_FACTOR:f}")
    if factor != factor.quantize(SMALLEST_FACTOR):
        raise ValueError("must have at most 6 decimal places")
    return factor


def unit_factor(**how: Any) -> Any:
    """A member that is the factor between two units, or null for none."""
    least = float(SMALLEST_FACTOR)
    schema = {"type": ["number", "null"], "minimum": least, "maximum": int(LARGEST_FACTOR), "multipleOf": least}
    return member(default=None, parse=_factor, schema=schema, **how)


_FLAGS = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}
"""The spellings that clients of the first program use."""


def _flag(text: str) -> bool:
    if text not in _FLAGS:
        raise ValueError("must be true or false")
    return _FLAGS[text]


def flag(description: str) -> Any:
    """A query parameter that is true or false, or empty for a parameter that is left out."""
    return query(default=None, parse=_flag, schema={"type": "string", "enum": list(_FLAGS)}, description=description, empty=True)


def text_without(problem: Callable[[str], str | None]) -> Callable[[Any], str]:
    """A parser of texts; it raises ValueError with the problem of a text that has one."""

    def checked(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")  # noqa: TRY004 - a wrong value of a request is a ValueError
        if (wrong := problem(value)) is not None:
            raise ValueError(wrong)
        return value

    return checked


_named = text_without(lambda text: None if look(text) else "must not be empty")
checked_ean13 = text_without(ean13.problem)
"""A code with the right check digit."""
checked_code = text_without(gtin.problem)
"""A code of 8, 12, 13 or 14 digits with the right check digit, as it is."""


def product_filter(description: str) -> Any:
    """A query parameter that selects one product; 400 for a code that no product can have."""
    return query(default=None, parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE, description=description)


def naming(max_length: int, **how: Any) -> Any:
    """A member that names something: text that is not empty, and has more than spaces and invisible characters."""
    return member(parse=_named, schema={"type": "string", "minLength": 1, "pattern": _NAMING}, max_length=max_length, **how)


CODE_SCHEMA = {"type": "string", "format": "gtin", "pattern": "^([0-9]{8}|[0-9]{12,14})$"}
CODE_EXAMPLE = "14006381333938"
EAN13_SCHEMA = {"type": "string", "format": "ean13", "pattern": "^[0-9]{13}$"}
EXAMPLE = "4006381333931"
_CURSOR = {"type": "string", "minLength": 1, "maxLength": 4096}
CURSOR = {**_CURSOR, "format": "cursor"}
"""The cursor in an earlier page's `Link: rel="next"`, of a list by name."""
MOVEMENT_CURSOR = {**_CURSOR, "format": "movement-cursor"}
"""The same, of a list of movements."""
CATEGORY_ID = {"type": ["string", "null"], "format": "category-id"}
"""A category that there is; empty or null for none."""


def period(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """The period that the parameters `from` and `to` name. Raises Invalid if it ends before it begins."""
    try:
        return period_of(since, until)
    except BadInput as error:
        raise Invalid([FieldError(error.reason, parameter=error.field)]) from None


def or_unset(text: str | None) -> Any:
    """A text, or UNSET if it is empty: an optional member that is left out then."""
    return text or UNSET
