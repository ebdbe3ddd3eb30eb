"""Quantities: whole thousandths inside, JSON numbers with at most three decimal places outside."""

from __future__ import annotations

from decimal import Decimal

PLACES = 3
ONE = 1000
LARGEST = 9_999_999_999
"""The largest quantity, in thousandths: what DECIMAL(10,3) holds."""
LARGEST_VALUE = Decimal(LARGEST) / ONE
_DIGITS = 7
"""Digits before the point that a quantity may have."""


def thousandths(value: Decimal) -> int:
    """A quantity in thousandths. Raises ValueError, with a text for the user, if it has more places or is too large."""
    if not value.is_finite():
        raise ValueError("must be a number")
    if not value:
        return 0
    # Judged by the exponent first: 1e999999 is a short text and a number too long to calculate with.
    if value.adjusted() >= _DIGITS or abs(value) > LARGEST_VALUE:
        raise ValueError(f"must be at most {text(LARGEST)}")
    _, digits, exponent = value.as_tuple()
    if int(exponent) < -PLACES:
        zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
        if int(exponent) + zeros < -PLACES:
            raise ValueError(f"must have at most {PLACES} decimal places")
    return int(value.scaleb(PLACES))


def number(value: int) -> int | float:
    """Thousandths as a JSON number. In the range up to `LARGEST` the shortest form of the float has the exact three places."""
    return value // ONE if value % ONE == 0 else value / ONE


def text(value: int) -> str:
    """Thousandths as `n.nnn`."""
    sign = "-" if value < 0 else ""
    return f"{sign}{abs(value) // ONE}.{abs(value) % ONE:03}"
