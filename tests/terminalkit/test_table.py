"""Tables fit the terminal that they are written to, and name the columns that are left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminalkit.display.output import Output
from terminalkit.display.table import Cell, Column, Painted, fold, lay_out, width
from tests.terminalkit.test_output import Terminal

TASKS = [
    Column("TASK", "id"),
    Column("STATUS"),
    Column("STAGE", drop=4),
    Column("ATTEMPT", "number", drop=3),
    Column("REPOSITORY", "id"),
    Column("PROJECT", "id", drop=1),
    Column("UPDATED", "number", drop=2),
    Column("REASON"),
]
ROWS: list[list[Cell]] = [
    [
        "task-1763635200000000001",
        Painted("failed", "red"),
        "",
        "3/3",
        "https://github.com/owner/a-name-of-some-length/with/folders",
        "cmd/tool",
        "2026-11-24T06:11:40Z",
        "the tests of one package were not built",
    ],
    ["task-2", "completed", "", "1/3", "https://github.com/owner/name", ".", "2026-11-24T06:11:40Z", ""],
]
TEXTS = st.text(st.characters(categories=["L", "N", "P"]), max_size=60) | st.text("ab /", max_size=60)


def lines(columns: Sequence[Column], rows: Sequence[Sequence[str | Painted]], room: int, *, whole: bool = False) -> list[str]:
    parts = lay_out(columns, rows, room, whole=whole).lines
    return ["".join(part.text if isinstance(part, Painted) else part for part in line).rstrip() for line in parts]


@pytest.mark.parametrize("room", [200, 140, 120, 100, 80])
def test_a_table_of_tasks_fits(room: int) -> None:
    assert max(map(width, lines(TASKS, ROWS, room))) <= room


def test_a_column_without_a_value_is_left_out_first_then_the_least_important() -> None:
    assert [lay_out(TASKS, ROWS, room).left_out for room in (200, 120, 100, 80)] == [
        [],
        ["STAGE"],
        ["STAGE", "ATTEMPT", "UPDATED"],
        ["STAGE", "ATTEMPT", "PROJECT", "UPDATED"],
    ]


def test_paths_are_folded_behind_a_slash_and_other_ids_are_whole() -> None:
    table = lines(TASKS, ROWS, 80)
    assert table[1].startswith("task-1763635200000000001  failed ")
    assert [line[37:].split("  ")[0] for line in table[1:4]] == ["https://github.com/", "owner/", "a-name-of-some-length/"]


@pytest.mark.parametrize("room", [59, 40])
def test_a_narrow_terminal_gets_a_block_for_each_row_with_all_values(room: int) -> None:
    blocks = "\n".join(lines(TASKS, ROWS, room)).split("\n\n")
    assert len(blocks) == 2
    for block, row in zip(blocks, ROWS, strict=True):
        found = block.replace("\n            ", "").replace(" ", "")
        assert [cell for cell in row if (cell.text if isinstance(cell, Painted) else cell).replace(" ", "") not in found] == []


@given(st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=4), st.integers(30, 120))
def test_every_table_fits_and_a_whole_one_has_every_character(rows: list[list[str]], room: int) -> None:
    columns = [Column("A", "id"), Column("B", drop=1), Column("C", "text")]
    if (fitting := lay_out(columns, rows, room)).titled:
        assert max(map(width, lines(columns, rows, room))) <= room
    assert set(fitting.left_out) <= {"B"}
    layout = lay_out(columns, rows, room, whole=True)
    assert list(layout.left_out) == []
    shown = "".join(part for line in layout.lines for part in line if isinstance(part, str))
    assert sorted(shown.replace(" ", "")) == sorted(
        "".join([*(shown_titles(layout.titled, rows)), *(cell for row in rows for cell in row)]).replace(" ", "")
    )


def shown_titles(titled: bool, rows: list[list[str]]) -> list[str]:
    """The titles that a layout has: one line of them, or one for each value."""
    return list("ABC") if titled else [title for row in rows for title, cell in zip("ABC", row, strict=True) if cell]


@given(TEXTS, st.integers(2, 20))
def test_folded_lines_fit_and_lose_nothing_but_spaces(text: str, room: int) -> None:
    folded = fold(text, room)
    assert all(width(line) <= room for line in folded)
    assert "".join(folded).replace(" ", "") == text.replace(" ", "")


def test_a_note_names_the_columns_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    out, err = Terminal(), Terminal()
    Output(stdout=out, stderr=err, no_color=True).table(TASKS, ROWS)
    assert err.getvalue() == (
        "left out, for lack of room: STAGE, ATTEMPT, PROJECT, UPDATED; a wider terminal or --json shows them\n"
    )
    monkeypatch.setenv("TERM", "dumb")
    out, err = Terminal(), Terminal()
    Output(stdout=out, stderr=err).table(TASKS, ROWS)
    assert err.getvalue() == ""
    assert "cmd/tool" in out.getvalue()
