"""Meaning of the lines that a barcode scanner, or a hand, types into `pantry scan`."""

from __future__ import annotations

from enum import Enum

import attrs

from pantry.cli.movements.quantities import parse
from pantry.domain import gtin

_SHORTEST_CODE = 8
"""Digits from which on a number is a code, if a wrong one: no quantity is that long, and no scanner's is shorter (EAN-8)."""
_SPACES = " \t\r\n"
"""Not the separators of GS1, which Python counts among spaces too."""


class Direction(Enum):
    """Where what is scanned goes."""

    IN = "in"
    OUT = "out"


@attrs.frozen
class ScannedCode:
    """A code of a product, of 8, 12, 13 or 14 digits; `lookup`: it is only to be looked up."""

    digits: str
    lookup: bool = False


@attrs.frozen
class Quantity:
    """How much what follows moves."""

    value: float


@attrs.frozen
class Undo:
    """The last booking is to be undone."""


Line = ScannedCode | Quantity | Direction | Undo


def understood(line: str) -> Line | None:
    """Return the meaning of a line, None if it is empty. Raises ValueError, with a text for the user, if it has no meaning.

    A line is one text, of which no part is a code. A form that only a scanner writes is a code or nothing, and never a quantity.
    """
    text = line.strip(_SPACES)
    lookup, word = text.startswith("?"), text.removeprefix("?").strip(_SPACES)
    if not text:
        return None
    if lookup or _is_code(word):
        return ScannedCode(gtin.digits_in(word), lookup)
    match word.lower():
        case "u" | "undo":
            return Undo()
        case "in" | "out" as direction:
            return Direction(direction)
    try:
        return Quantity(parse(word))
    except ValueError as error:
        raise ValueError(f"{error}; say a code, in, out, a quantity, u, or ? and a code") from None


def _is_code(word: str) -> bool:
    return gtin.is_scanned(word) or (word.isascii() and word.isdigit() and len(word) >= _SHORTEST_CODE)
