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

from terminalkit.display.table import Cell, Column, Layout, Painted, lay_out, printable

if TYPE_CHECKING:
    from rich.console import Console

_USUAL = 80
"""Width of a terminal that does not tell its width."""

_C1 = re.compile("[\x7f-\x9f]")


class OutputClosed(Exception):
    """The reader of standard output is gone."""


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
        """Write rows under their titles: laid out to fit a terminal, separated by tabs elsewhere.

        A note names the columns that a narrow terminal has no room for. A dumb terminal gets all of them.
        """
        colour = self._colour(self.stdout)
        if self.stdout.isatty():
            layout = lay_out(columns, rows, _room(self.stdout), whole=os.environ.get("TERM") == "dumb")
            self._write("".join(f"{line}\n" for line in _lines(layout, colour=colour)))
            if layout.left_out:
                self.note(f"left out, for lack of room: {', '.join(layout.left_out)}; a wider terminal or --json shows them")
            return
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
        with contextlib.suppress(OSError):  # without a reader, or on a full disk, the message is lost; the work is not
            self.stderr.write(text + "\n")
            self.stderr.flush()

    def _write(self, text: str) -> None:
        with self._pipe():
            self.stdout.write(text)
            self.stdout.flush()

    def _colour(self, stream: TextIO) -> bool:
        return wants_colour(stream, os.environ, never=self.no_color)

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


def _room(stream: TextIO) -> int:
    """Return the width of a terminal: COLUMNS, else as the terminal tells, else 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL
    except (OSError, ValueError):  # it is closed, or has no descriptor
        return _USUAL


def _lines(layout: Layout, *, colour: bool) -> Iterator[str]:
    for number, line in enumerate(layout.lines):
        text = "".join(painted(cell.text, cell.colour, wanted=colour) if isinstance(cell, Painted) else cell for cell in line)
        yield f"\x1b[1m{text.rstrip()}\x1b[0m" if colour and number == 0 and layout.titled else text.rstrip()
