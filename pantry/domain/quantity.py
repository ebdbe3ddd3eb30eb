"""Quantities: whole thousandths inside, JSON numbers with at most three decimal places outside."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Literal

PLACES = 3
ONE = 1000
LARGEST = 9_999_999_999
"""The largest quantity, in thousandths: what DECIMAL(10,3) holds."""
LARGEST_VALUE = Decimal(LARGEST) / ONE
_DIGITS = 7
"""Digits before the point that a quantity may have."""
_WRITTEN = re.compile(r"-?([0-9]{1,40}([.,][0-9]{1,40})?|[.,][0-9]{1,40})")
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}([.,])[0-9]{3}")
"""The form of a number whose comma or point may separate thousands."""


def read(written: str, mark: Literal[".", ","] = ".") -> Decimal:
    """A number as people and spreadsheets write it, with a point or a comma before its decimals.

    `mark` surely begins decimals. The other one does too, unless it may separate thousands, as in `1,000`. Spaces around the
    number do not matter. Raises ValueError, with a text for the user. `ui/pantry/codes/codes.ts` has the same rule.
    """
    text = written.strip()
    if not _WRITTEN.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    thousands = _THOUSANDS.fullmatch(text)
    if thousands is not None and (other := thousands[1]) != mark:
        raise ValueError(f"{text} is ambiguous: write {text.replace(other, '')} or {text.replace(other, mark)}")
    return Decimal(text.replace(",", "."))


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


def converted(value: int, factor: Fraction) -> int | None:
    """A quantity times a factor, both in thousandths; None if that is not a whole number of them, or too large."""
    product = value * factor
    return int(product) if product.denominator == 1 and product <= LARGEST else None
