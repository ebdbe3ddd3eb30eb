"""Values as text, colour, and JSON: text for a terminal is safe, and JSON for a program is whole."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.cli.tables.text import commit, score
from terminalkit.display.output import Output, wants_colour
from terminalkit.display.table import Column, Painted, duration, percent, printable, size, width

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@given(st.text())
def test_printable_text_is_one_line_without_control_or_direction_characters(text: str) -> None:
    shown = printable(text)
    assert shown == printable(shown)
    assert all(unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"} for character in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff")


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(VALUES)
def test_json_says_the_same_and_has_no_control_character(value: object) -> None:
    for stream in (io.StringIO(), Terminal()):
        Output(stdout=stream).document(value)
        assert json.loads(stream.getvalue()) == value
        assert not any(unicodedata.category(character) == "Cc" and character != "\n" for character in stream.getvalue())


@given(VALUES)
def test_a_record_is_one_line(value: object) -> None:
    stream = io.StringIO()
    Output(stdout=stream).record(value)
    assert stream.getvalue().count("\n") == 1


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2)))
def test_a_row_on_a_pipe_is_a_line_with_as_many_fields_as_columns(rows: list[list[str]]) -> None:
    stream = io.StringIO()
    Output(stdout=stream).table([Column("A", "id"), Column("B")], rows)
    lines = stream.getvalue().split("\n")
    assert (lines[0], lines[-1], len(lines)) == ("A\tB", "", len(rows) + 2)
    assert all(line.count("\t") == 1 for line in lines[1:-1])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0s"),
        (0, "0.0s"),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (3599.6, "1h00m"),
        (86400, "24h00m"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_numbers() -> None:
    assert [score(30.004), percent(66.666), percent(0.0), percent(None)] == ["30.00", "66.7%", "0.0%", "n/a"]
    assert [size(None), size(0), size(1023), size(1024), size(5 * 1024**5)] == ["n/a", "0 B", "1023 B", "1.0 KiB", "5120.0 TiB"]
    assert [commit(None), commit("0123456789abcdef")] == ["", "0123456789ab"]
    assert [width("ab"), width("漢字"), width("e\u0301")] == [2, 4, 1]


@pytest.mark.parametrize("forced", [None, "", "1"])
@pytest.mark.parametrize("unwanted", [None, "", "1"])
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("term", ["dumb", "xterm"])
@pytest.mark.parametrize("never", [True, False])
def test_who_decides_on_colour(*, forced: str | None, unwanted: str | None, terminal: bool, term: str, never: bool) -> None:
    given_ = {"FORCE_COLOR": forced, "NO_COLOR": unwanted, "TERM": term}
    environ = {name: value for name, value in given_.items() if value is not None}
    stream = Terminal() if terminal else io.StringIO()
    expected = not never and (bool(forced) or (terminal and not unwanted and term != "dumb"))
    assert wants_colour(stream, environ, never=never) is expected


def test_wide_characters_keep_columns_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "15")
    stream = Terminal()
    Output(stdout=stream, no_color=True).table([Column("A", "id"), Column("B", "id")], [["漢字漢字漢字", Painted("x", "red")]])
    assert stream.getvalue().splitlines()[1].rstrip() == "漢字漢字漢字  x"


def test_names_and_values_without_a_value_are_left_out() -> None:
    stream = io.StringIO()
    Output(stdout=stream).fields([("a", "1"), ("b", ""), ("longer", Painted("", "red")), ("c", Painted("2", "red"))])
    assert stream.getvalue() == "a\t1\nc\t2\n"
