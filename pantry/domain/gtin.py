"""GTIN: the numbers under barcodes, in their lengths, as one (GS1 General Specifications, 3.3.2 and 5.2.2.4.2).

A code here has 13 digits, or 14 if it names a pack of several items: a GTIN-14 whose first digit is not 0. Shorter codes have
zeros in front, which change no check digit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pantry.domain.ean13 import DIGITS

PACK_DIGITS = 14
_SHORT = 8
_LENGTHS = (_SHORT, 12, DIGITS, PACK_DIGITS)
OWN_PREFIX = "29"
"""Codes that begin so are free for use inside of a household or a company (GS1 General Specifications, 1.4.2)."""
_IDENTIFIER = re.compile(r"\][A-Za-z][0-9]")
"""An AIM identifier of a scanner (ISO/IEC 15424), before the code."""
_ELEMENTS = re.compile(r"\](C1|e0|d2|Q3)|(\][A-Za-z][0-9])?\(")
"""The beginning of elements of GS1: of GS1-128, DataBar, DataMatrix and QR, or with parentheses around their numbers."""
_ITEM = re.compile(r"\(01\)([0-9]{14})(?![0-9])|01([0-9]{14})")
"""The element 01: the GTIN of the item."""
_EAN_8 = "]E4"


def check_digit(first: str) -> int:
    """The check digit behind other digits: weights 3, 1, 3, 1, … from the right; ten less the sum, modulo ten."""
    return -sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(first))) % 10


def is_scanned(text: str) -> bool:
    """Whether a text begins as only a scanner writes it: with an identifier, or with elements of GS1."""
    return _IDENTIFIER.match(text) is not None or _ELEMENTS.match(text) is not None


def digits_in(text: str) -> str:
    """Return the digits of the code that a typed or scanned text is, without the identifier of a scanner.

    Digits inside of another text are no code, and of elements of GS1 only the item counts. Raises ValueError, with a text for the
    user, if the text is no code. `ui/pantry/codes/codes.ts` has the same rule.
    """
    digits = _IDENTIFIER.sub("", text, count=1) if _IDENTIFIER.match(text) else text
    if _ELEMENTS.match(text):
        item = _ITEM.match(digits)
        if item is None:
            raise ValueError("it does not begin with an item (01) and its 14 digits")
        digits = item[1] or item[2]
    elif text.startswith(_EAN_8) and len(digits) == _SHORT:
        digits = digits.zfill(DIGITS)  # 8 digits alone may be a UPC-E
    if (wrong := problem(digits)) is not None:
        raise ValueError(wrong)
    return digits


def problem(text: str) -> str | None:
    """Return the fault of a code of any length, or None."""
    if not (text.isascii() and text.isdigit()):
        return "a code must contain only digits"
    if len(text) not in _LENGTHS:
        return f"a code has 8, 12, 13 or 14 digits, got {len(text)}"
    if not codes_of(text):
        return f"invalid check digit: expected {check_digit(text[:-1])}, got {text[-1]}"
    return None


def codes_of(text: str) -> Sequence[str]:
    """The sound codes that digits can stand for, the most probable one first; none if there is no such code.

    8 digits are an EAN-8, or a UPC-E of the number system 0 or 1. If both are sound, a first digit of 0 is taken for a UPC-E: an
    EAN-8 that begins so is for use inside of a company.
    """
    if not (text.isascii() and text.isdigit()) or len(text) not in _LENGTHS:
        return ()
    if len(text) == PACK_DIGITS:
        found = [text.removeprefix("0") if text[0] == "0" else text]
    elif len(text) == _SHORT and text[0] in "01":
        both = [_upc_a(text).zfill(DIGITS), text.zfill(DIGITS)]
        found = both if text[0] == "0" else both[::-1]
    else:
        found = [text.zfill(DIGITS)]
    return [code for code in found if check_digit(code[:-1]) == int(code[-1])]


def _upc_a(digits: str) -> str:
    """The 12 digits that a UPC-E stands for, by its last digit before the check digit."""
    system, item, rule, check = digits[0], digits[1:6], digits[6], digits[7]
    if rule in "012":
        return f"{system}{item[:2]}{rule}0000{item[2:]}{check}"
    if rule == "3":
        return f"{system}{item[:3]}00000{item[3:]}{check}"
    if rule == "4":
        return f"{system}{item[:4]}00000{item[4:]}{check}"
    return f"{system}{item}0000{rule}{check}"


def own_code(number: int) -> str:
    """A code for a thing without one: prefix 29, ten digits of a number, check digit."""
    first = f"{OWN_PREFIX}{number % 10**10:010}"
    return f"{first}{check_digit(first)}"
