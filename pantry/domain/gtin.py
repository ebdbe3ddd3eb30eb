"""GTIN: the numbers under barcodes, in their lengths, as one (GS1 General Specifications, 3.3.2 and 5.2.2.4.2).

A code here has 13 digits, or 14 if it names a pack of several items: a GTIN-14 whose first digit is not 0. Shorter codes have
zeros in front, which change no check digit.
"""

from __future__ import annotations

from collections.abc import Sequence

from pantry.domain.ean13 import DIGITS

PACK_DIGITS = 14
_SHORT = 8
_LENGTHS = (_SHORT, 12, DIGITS, PACK_DIGITS)
OWN_PREFIX = "29"
"""Codes that begin so are free for use inside of a household or a company (GS1 General Specifications, 1.4.2)."""


def check_digit(first: str) -> int:
    """The check digit behind other digits: weights 3, 1, 3, 1, … from the right; ten less the sum, modulo ten."""
    return -sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(first))) % 10


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
