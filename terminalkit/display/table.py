"""Texts and tables on a terminal: widths, cut texts, columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

import attrs

NOT_MEASURED = "n/a"

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_SPACES = str.maketrans("\t\n\r", "   ")


def printable(text: str) -> str:
    """Return the text on one line. Characters that move the cursor, change colours or reorder characters are escaped.

    Names and reasons come from repositories that are not trusted.
    """
    return _UNSAFE.sub(lambda match: _escape(match[0]), text.translate(_SPACES))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def width(text: str) -> int:
    """The columns that a printable text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def duration(seconds: float) -> str:
    """`0.4s`, `12s`, `3m05s`, `1h02m`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def moment(at: datetime | None) -> str:
    """RFC 3339 in UTC to the second; nothing if there is no time."""
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def percent(value: float | None) -> str:
    """A share of 100 with one decimal; `n/a` if none was measured, which is not the same as 0."""
    return NOT_MEASURED if value is None else f"{value:.1f}%"


def size(count: int | None) -> str:
    """A number of bytes in binary units."""
    if count is None:
        return NOT_MEASURED
    number, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        units.pop(0)
    return f"{number:.0f} {units[0]}" if units[0] == "B" else f"{number:.1f} {units[0]}"


def count(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_GAP = 2
_NARROWEST = 16
"""Width that a folded column has at least."""
_BLOCKS_BELOW = 60
"""Width of a terminal below which a table that does not fit becomes blocks."""


@attrs.frozen
class Painted:
    """A text and the colour (a basic ANSI colour's name) that it has if there is colour."""

    text: str
    colour: str


Cell = str | Painted


@attrs.frozen
class Column:
    """A column of a table. A `number` is aligned right and never folded. An `id` is folded behind `/` only.

    `drop`: on a terminal that is too narrow, columns with the largest number are left out first. 0: never.
    """

    title: str
    kind: Literal["id", "number", "text"] = "text"
    drop: int = 0


@attrs.frozen
class Layout:
    """A table as lines, each a sequence of cells with padding. `titled`: the first line has the titles.

    `left_out` has the titles of the columns that were left out.
    """

    lines: Sequence[Sequence[Cell]]
    left_out: Sequence[str] = ()
    titled: bool = True


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int, *, whole: bool = False) -> Layout:
    """Return the table for a terminal of the width `room`. `whole`: leave no column out."""
    rows = [[_printable(cell) for cell in row] for row in rows]
    kept = list(range(len(columns)))
    natural = [max(width(text) for text in (column.title, *_texts(rows, i))) for i, column in enumerate(columns)]

    floors = [_floor(column, natural[i], _texts(rows, i)) for i, column in enumerate(columns)]

    def fits(widths: Sequence[int]) -> bool:
        return sum(widths) + _GAP * (len(widths) - 1) <= room

    while not fits([floors[i] for i in kept]) and not whole:
        if (weakest := _weakest(columns, rows, kept)) is None:
            break
        kept.remove(weakest)
    if not fits([floors[i] for i in kept]) or (room < _BLOCKS_BELOW and not fits(natural)):
        return Layout(list(_blocks(columns, rows, room)), titled=False)
    widths = _shared([floors[i] for i in kept], [natural[i] for i in kept], room - _GAP * (len(kept) - 1))
    chosen = [columns[i] for i in kept]
    lines: list[Sequence[Cell]] = [_padded([column.title for column in chosen], chosen, widths)]
    for row in rows:
        folded = [fold(_text(row[i]), width_) for i, width_ in zip(kept, widths, strict=True)]
        for depth in range(max(map(len, folded), default=0)):
            cells = [_like(row[i], parts[depth] if depth < len(parts) else "") for i, parts in zip(kept, folded, strict=True)]
            lines.append(_padded(cells, chosen, widths))
    return Layout(lines, [column.title for i, column in enumerate(columns) if i not in kept])


def _floor(column: Column, natural: int, texts: Iterator[str]) -> int:
    """Return the least width of a column: an `id` is broken behind `/` only, so that each part can be copied."""
    if column.kind == "number":
        return natural
    parts = (part for text in texts for part in re.split("(?<=/)", text)) if column.kind == "id" else ()
    return min(natural, max(width(column.title), _NARROWEST, *map(width, parts)))


def fold(text: str, room: int) -> list[str]:
    """Return the text as lines of at most this width, broken at spaces, else behind `/`, else anywhere."""
    lines = []
    while width(text) > room:
        most = _fitting(text, room)
        at = text.rfind(" ", 1, most + 1)
        cut = at if at > 0 else text.rfind("/", 0, most) + 1 or most
        lines.append(text[:cut].rstrip(" "))
        text = text[cut:].lstrip(" ")
    return [*lines, text]


def _fitting(text: str, room: int) -> int:
    """Return how many characters fit, at least one."""
    used = 0
    for index, character in enumerate(text):
        used += width(character)
        if used > room:
            return max(index, 1)
    return len(text)


def _weakest(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], kept: Sequence[int]) -> int | None:
    """Return the column to leave out first: one without a value, else the one with the largest `drop`."""
    able = [i for i in kept if columns[i].drop]
    empty = [i for i in able if not any(_texts(rows, i))]
    return max(empty or able, key=lambda i: columns[i].drop, default=None)


def _shared(floors: Sequence[int], natural: Sequence[int], room: int) -> Sequence[int]:
    """Return widths between the two: the room above the floors goes to the columns that are narrowest so far."""
    widths = list(floors)
    for _ in range(max(room - sum(widths), 0)):
        wanting = [i for i, width_ in enumerate(widths) if width_ < natural[i]]
        if not wanting:
            break
        widths[min(wanting, key=widths.__getitem__)] += 1
    return widths


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int) -> Iterator[Sequence[Cell]]:
    """Rows as blocks of titles and values, without fields that have no value. The terminal wraps ids: they can be copied."""
    longest = max(width(column.title) for column in columns)
    for number, row in enumerate(rows):
        if number:
            yield [""]
        for column, cell in zip(columns, row, strict=True):
            if not _text(cell):
                continue
            parts = fold(_text(cell), max(room - longest - _GAP, _NARROWEST)) if column.kind == "text" else [_text(cell)]
            for depth, part in enumerate(parts):
                yield [("" if depth else column.title).ljust(longest + _GAP), _like(cell, part)]


def _padded(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int]) -> Sequence[Cell]:
    """Return the cells with spaces up to the widths of their columns, and the gaps between them."""
    padded: list[Cell] = []
    for index, (cell, column, width_) in enumerate(zip(cells, columns, widths, strict=True)):
        missing = " " * (width_ - width(_text(cell)))
        last = index == len(cells) - 1
        if column.kind == "number":
            padded += [missing, cell, "" if last else " " * _GAP]
        else:
            padded += [cell, "" if last else missing + " " * _GAP]
    return padded


def _texts(rows: Sequence[Sequence[Cell]], index: int) -> Iterator[str]:
    return (_text(row[index]) for row in rows)


def _text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Painted) else cell


def _like(cell: Cell, text: str) -> Cell:
    return Painted(text, cell.colour) if isinstance(cell, Painted) else text


def _printable(cell: Cell) -> Cell:
    return _like(cell, printable(_text(cell)))
