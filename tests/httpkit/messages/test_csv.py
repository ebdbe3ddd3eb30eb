"""A CSV export can be opened: no cell is a formula, nothing in it reaches a terminal."""

from __future__ import annotations

import csv
import io

import attrs
import pytest
from hypothesis import example
from hypothesis import given as for_any
from hypothesis import strategies as st

from httpkit.messages.encoding import decode_cell, encode_csv


@attrs.frozen
class Row:
    name: str
    amount: float


def cell(name: str, amount: float = 0.0) -> tuple[str, str]:
    (row,) = csv.DictReader(io.StringIO(encode_csv(Row, [Row(name, amount)]).decode(), newline=""))
    return row["name"], row["amount"]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\uff1d"])
def test_a_text_that_begins_as_a_formula_does_is_marked_as_text(begin: str) -> None:
    assert cell(f"{begin}cmd|' /C calc'!A0")[0] == f"'{begin}cmd|' /C calc'!A0"


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    assert cell("-12.5", -3.0) == ("-12.5", "-3.0")
    assert cell("a=b, c") == ("a=b, c", "0.0")


def test_escape_sequences_and_changes_of_direction_are_replaced() -> None:
    assert cell("\x1b]52;c;aGk=\x07 \u202etxt.exe \x9b31m")[0] == "\ufffd]52;c;aGk=\ufffd \ufffdtxt.exe \ufffd31m"


MARKED = st.builds(str.__add__, st.text("' \t=+-@\uff1d1", max_size=6), st.text(max_size=6))


@for_any(MARKED | st.text())
@example("=1+1")
@example("'=1+1")
@example("''-x")
@example("-5")
@example("'-5")
@example(" Jam")
@example("'tis ")
@example("'")
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    written, _ = cell(text)
    assert decode_cell(written) == decode_cell(cell(decode_cell(written))[0])
    if "\ufffd" not in written:
        assert decode_cell(written) == text
    if decode_cell(written)[:1] in ("=", "@"):
        assert written[0] == "'"


@pytest.mark.parametrize(
    ("cell", "text"),
    [("'=x", "=x"), ("''=x", "'=x"), ("  Jam ", "Jam"), ("'tis", "'tis"), ("'-5", "'-5"), ("", "")],
)
def test_a_cell_of_another_table_loses_one_mark_or_the_spaces_around_it(cell: str, text: str) -> None:
    assert decode_cell(cell) == text
