"""EAN-13: the number under a barcode, which is the key of a product."""

from __future__ import annotations

DIGITS = 13
_ZEROS = 4 * 6 * ord("0")
"""The weighted sum of twelve characters `0`."""


def check_digit(first: str) -> int:
    """The check digit that belongs to the first twelve digits: weights 1, 3, 1, 3, …; ten less the sum, modulo ten."""
    digits = first.encode()
    total = sum(digits[::2]) + 3 * sum(digits[1::2]) - _ZEROS
    return -total % 10


def problem(code: str) -> str | None:
    """Return the fault of a code, or None."""
    if len(code) != DIGITS:
        return f"EAN-13 must have exactly 13 digits, got {len(code)}"
    if not (code.isascii() and code.isdigit()):
        return "EAN-13 must contain only digits"
    expected = check_digit(code[:-1])
    if int(code[-1]) != expected:
        return f"invalid EAN-13 check digit: expected {expected}, got {code[-1]}"
    return None
