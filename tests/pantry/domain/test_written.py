"""Quantities and codes as people, spreadsheets and scanners write them: the pages and Python read each in the same way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from pantry.cli.movements.quantities import parse
from pantry.cli.scan.scanner import Direction, Quantity, ScannedCode, Undo, understood
from pantry.domain import gtin
from pantry.domain.quantity import number, read, thousandths
from tests.support import ROOT

T = TypeVar("T")
UNIT = ROOT / "ui" / "unit"
QUANTITIES: list[dict[str, Any]] = json.loads((UNIT / "quantities.json").read_text(encoding="utf-8"))
"""Read by `ui/unit/codes.test.ts` too. `comma` is the quantity in a table whose decimals have a comma, if that is another one."""
SCANS: list[dict[str, Any]] = json.loads((UNIT / "scans.json").read_text(encoding="utf-8"))


def _or_none(read: Callable[[], T]) -> T | None:
    """The value, None if the text is refused."""
    try:
        return read()
    except ValueError:
        return None


@pytest.mark.parametrize("case", QUANTITIES, ids=lambda case: repr(case["written"]))
def test_a_quantity_is_read_or_refused(case: dict[str, Any]) -> None:
    assert _or_none(lambda: parse(case["written"], least=0)) == case["quantity"]


@pytest.mark.parametrize("case", QUANTITIES, ids=lambda case: repr(case["written"]))
def test_a_table_with_semicolons_has_decimals_after_a_comma(case: dict[str, Any]) -> None:
    found = _or_none(lambda: thousandths(read(case["written"], ",")))
    assert (None if found is None or found < 0 else number(found)) == case.get("comma", case["quantity"])


@pytest.mark.parametrize(
    ("written", "mark", "problem"),
    [("1,000", ".", "write 1000 or 1.000"), ("1.000", ",", "write 1000 or 1,000"), ("1_0", ".", "'1_0' is not a number")],
)
def test_a_refusal_says_how_to_write_the_quantity(written: str, mark: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(written, mark)


@pytest.mark.parametrize("case", SCANS, ids=lambda case: repr(case["scan"]))
def test_a_scanned_line_is_a_code_as_a_whole_or_none(case: dict[str, Any]) -> None:
    found = _or_none(lambda: understood(case["scan"]))
    code = gtin.codes_of(found.digits)[0] if isinstance(found, ScannedCode) else None
    assert code == case["code"]
    assert code or found in (None, Quantity(1234567)), "seven digits may be a quantity"


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("0,5\r", Quantity(0.5)),
        (" 3 ", Quantity(3)),
        ("?]C1010400638133393110LOT7", ScannedCode("04006381333931", lookup=True)),
        ("]E401234565", ScannedCode("0000001234565")),
        ("IN", Direction.IN),
        ("u", Undo()),
        ("", None),
    ],
)
def test_a_line_means_a_code_a_direction_a_quantity_or_an_undo(line: str, meaning: object) -> None:
    assert understood(line) == meaning


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1,000", "write 1000 or 1.000"),
        ("1_0", "is not a number"),
        ("]C03", "a code has 8, 12, 13 or 14 digits"),
        ("]C110LOT", "does not begin with an item"),
    ],
)
def test_a_line_without_a_meaning_is_refused_with_the_reason(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        understood(line)
