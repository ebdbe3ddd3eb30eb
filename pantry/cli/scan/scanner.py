"""Meaning of the lines that a barcode scanner, or a hand, types into `pantry scan`."""

from __future__ import annotations

from enum import Enum

import attrs

from pantry.cli.movements.quantities import parse
from pantry.domain import ean13

UPC_DIGITS = 12
_SHORTEST_CODE = 8
"""Digits from which on a number is a code, if a wrong one: no quantity is that long, and no scanner's is shorter (EAN-8)."""


class Direction(Enum):
    """Where what is scanned goes."""

    IN = "in"
    OUT = "out"


@attrs.frozen
class Code:
    """A product's code; `lookup`: it is only to be looked up."""

    ean13: str
    lookup: bool = False


@attrs.frozen
class Quantity:
    """How much what follows moves."""

    value: float


@attrs.frozen
class Undo:
    """The last booking is to be undone."""


Line = Code | Quantity | Direction | Undo


def understood(line: str) -> Line | None:
    """Return the meaning of a line, None if it is empty. Raises ValueError, with a text for the user, if it has no meaning.

    The twelve digits of a UPC-A are an EAN-13 that begins with 0 (GS1 General Specifications, section on GTIN-12).
    """
    text = line.strip()
    lookup, word = text.startswith("?"), text.removeprefix("?").strip()
    if not text:
        return None
    if lookup or _is_code(word):
        code = f"0{word}" if len(word) == UPC_DIGITS else word
        if (wrong := ean13.problem(code)) is not None:
            raise ValueError(wrong)
        return Code(code, lookup)
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
    return word.isascii() and word.isdigit() and len(word) >= _SHORTEST_CODE
