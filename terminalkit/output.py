"""Output of a command: data on standard output, everything else on standard error.

Data is one JSON document with `--json`, a table on a terminal, and lines of fields separated by tabs elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

import attrs

from terminalkit.text import printable, width

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST = 12
"""Columns of a terminal that a text has at least, if it needs them."""

_C1 = re.compile("[\x7f-\x9f]")


class OutputClosed(Exception):
    """The reader of standard output is gone."""


@attrs.frozen
class Painted:
    """A text and the colour (a basic ANSI colour's name) that it has if there is colour."""

    text: str
    colour: str


Cell = str | Painted


@attrs.frozen
class Column:
    """A column of a table. An `id` is never cut or broken, a `number` neither and is aligned right, a `text` is broken to fit."""

    title: str
    kind: Literal["id", "number", "text"] = "text"


def wants_colour(stream: TextIO, environ: Mapping[str, str], *, never: bool) -> bool:
    """Whether colour is written: `--no-color` over FORCE_COLOR over NO_COLOR and TERM=dumb over the stream being a terminal.

    Sources: no-color.org and force-color.org; an empty value counts as none.
    """
    if never:
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def painted(text: str, colour: str, *, wanted: bool) -> str:
    """The text with the escape sequences of a colour around it, where colour is wanted."""
    if not wanted:
        return text
    codes = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
    return f"\x1b[{codes[colour]}m{text}\x1b[0m"


@attrs.frozen(kw_only=True)
class Output:
    """The two streams of a command and how it was asked to write to them."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    stdout: TextIO = attrs.field(factory=lambda: sys.stdout)
    stderr: TextIO = attrs.field(factory=lambda: sys.stderr)

    # Data

    def document(self, value: Any) -> None:
        """Write one JSON document, laid out for reading on a terminal."""
        self._write(_json(value, indent=2 if self.stdout.isatty() else None) + "\n")

    def record(self, value: Any) -> None:
        """Write one JSON value on one line, at once: one of a sequence."""
        self._write(_json(value, indent=None) + "\n")

    def line(self, text: str) -> None:
        """Write one line of data."""
        self._write(printable(text) + "\n")

    def lines(self, text: str) -> None:
        """Write lines of data, at once: some of a sequence. Tabs stay."""
        self._write(
            "".join(f"{chr(9).join(map(printable, line.split(chr(9))))}\n" for line in text.removesuffix("\n").split("\n"))
        )

    def row(self, cells: Sequence[str]) -> None:
        """Write one line of fields, at once: one of a sequence without an end."""
        self._write(("  " if self.stdout.isatty() else "\t").join(map(printable, cells)) + "\n")

    def raw(self, text: str) -> None:
        """Write a text of the program as it is."""
        self._write(text)

    def content(self, content: bytes) -> None:
        """Write a file as it is; on a terminal as lines of text, so that nothing in it has an effect there."""
        if self.stdout.isatty():
            self.lines(content.decode(errors="replace"))
            return
        with self._pipe():
            self.stdout.flush()
            self.stdout.buffer.write(content)
            self.stdout.buffer.flush()

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """Write rows under their titles: laid out on a terminal, separated by tabs elsewhere."""
        if self.stdout.isatty():
            with self._pipe():
                _print_table(self._console(), columns, rows)
            return
        colour = self._colour(self.stdout)
        lines = [[column.title for column in columns], *([_tabbed(cell, colour=colour) for cell in row] for row in rows)]
        self._write("".join("\t".join(line) + "\n" for line in lines))

    def fields(self, pairs: Sequence[tuple[str, Cell]]) -> None:
        """Write names and values, one pair on a line; a pair without a value is left out."""
        shown = [(name, value) for name, value in pairs if (value.text if isinstance(value, Painted) else value)]
        longest = max((len(name) for name, _ in shown), default=0)
        colour = self._colour(self.stdout)
        terminal = self.stdout.isatty()
        names = [name.ljust(longest + 2) if terminal else f"{name}\t" for name, _ in shown]
        lines = [f"{name}{_tabbed(value, colour=colour)}\n" for name, (_, value) in zip(names, shown, strict=True)]
        self._write("".join(lines))

    # Messages

    def note(self, text: str) -> None:
        """Tell the user something on standard error; not with `--quiet`."""
        if not self.quiet:
            self._say(printable(text))

    def detail(self, text: str) -> None:
        """Tell the user something on standard error, with `--verbose` only."""
        if self.verbose:
            self._say(printable(text))

    def error(self, what: str, why: str, *, code: str, hint: str | None = None) -> None:
        """Write the failure, its reason and its remedy: two lines on standard error, or a JSON document on one with `--json`."""
        if self.json:
            error = {"code": code, "message": f"{what}: {why}"} | ({} if hint is None else {"hint": hint})
            self._say(_json({"error": error}, indent=None))
            return
        colour = self._colour(self.stderr)
        self._say(f"{painted('error:', 'red', wanted=colour)} {printable(what)}: {printable(why)}")
        if hint is not None:
            self._say(f"{painted('hint:', 'cyan', wanted=colour)} {printable(hint)}")

    def trace(self, text: str) -> None:
        """Write a traceback, with `--verbose` only."""
        if self.verbose:
            self._say(text.rstrip())

    @property
    def progress_console(self) -> Console | None:
        """A console for progress that is drawn over itself, None where lines are to be written instead."""
        if self.stderr.isatty() and os.environ.get("TERM") != "dumb":
            return _make_console(self.stderr, colour=self._colour(self.stderr))
        return None

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown at all: not with `--quiet`, and with `--json` on a terminal only."""
        return not self.quiet and (not self.json or self.stderr.isatty())

    def _say(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the reader is gone
            self.stderr.write(text + "\n")
            self.stderr.flush()

    def _write(self, text: str) -> None:
        with self._pipe():
            self.stdout.write(text)
            self.stdout.flush()

    def _colour(self, stream: TextIO) -> bool:
        return wants_colour(stream, os.environ, never=self.no_color)

    def _console(self) -> Console:
        return _make_console(self.stdout, colour=self._colour(self.stdout))

    @contextlib.contextmanager
    def _pipe(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            raise OutputClosed from error


def _json(value: Any, *, indent: int | None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _C1.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _tabbed(cell: Cell, *, colour: bool) -> str:
    if isinstance(cell, Painted):
        return painted(printable(cell.text), cell.colour, wanted=colour)
    return printable(cell)


def _make_console(stream: TextIO, *, colour: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415 - takes longer to import than most commands take

    system: Literal["standard"] | None = "standard" if colour else None
    return Console(file=stream, color_system=system, no_color=not colour, highlight=False, markup=False, emoji=False)


def _print_table(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    cells = [
        [Text(printable(cell.text), cell.colour) if isinstance(cell, Painted) else Text(printable(cell)) for cell in row]
        for row in rows
    ]
    least = 0
    for index, column in enumerate(columns):
        fixed = column.kind != "text"
        longest = max([len(column.title), *(width(row[index].plain) for row in cells)])
        narrowest = longest if fixed else min(longest, max(len(column.title), _NARROWEST))
        least += narrowest + 2
        table.add_column(
            column.title,
            justify="right" if column.kind == "number" else "left",
            no_wrap=fixed,
            overflow="crop" if fixed else "fold",
            min_width=narrowest,
        )
    for row in cells:
        table.add_row(*row)
    console.width = max(console.width, least)  # a terminal that is too narrow breaks the lines, and no column is left out
    console.print(table, crop=False)
