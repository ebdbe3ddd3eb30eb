"""Where a command writes: data on standard output, everything else on standard error.

Data is JSON where `--json` is given, a table on a terminal, and lines of fields separated by tabs elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import attrs

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_RED, _CYAN = 31, 36


@attrs.frozen(kw_only=True)
class Output:
    """How a command was asked to write."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False

    def document(self, value: Any) -> None:
        """Write one JSON document, laid out for reading on a terminal."""
        self._data(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))

    def record(self, value: Any) -> None:
        """Write one JSON value on a line of its own, at once: one of a sequence."""
        self._data(json.dumps(value, ensure_ascii=False))

    def line(self, *fields: str) -> None:
        """Write one line of fields, at once: one of a sequence."""
        self._data(("  " if sys.stdout.isatty() else "\t").join(map(printable, fields)))

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write rows under their titles: aligned on a terminal, separated by tabs elsewhere."""
        lines = [list(titles), *([printable(cell) for cell in row] for row in rows)]
        if sys.stdout.isatty():
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
            text = "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        else:
            text = "\n".join("\t".join(line) for line in lines)
        self._data(text)

    def note(self, text: str) -> None:
        """Tell the user something on standard error; not with `--quiet`."""
        if not self.quiet:
            _say(printable(text))

    def error(self, what: str, why: str, *, code: str, hint: str | None = None) -> None:
        """Write what failed and why, and what to do: on standard error, a JSON document with `--json`."""
        if self.json:
            document = {"code": code, "message": f"{what}: {why}"} | ({} if hint is None else {"hint": hint})
            _say(json.dumps({"error": document}, ensure_ascii=False))
            return
        _say(f"{self._painted('error:', _RED)} {printable(what)}: {printable(why)}")
        if hint is not None:
            _say(f"{self._painted('hint:', _CYAN)} {printable(hint)}")

    def _painted(self, text: str, colour: int) -> str:
        """`--no-color` over FORCE_COLOR over NO_COLOR and TERM=dumb over standard error being a terminal (no-color.org)."""
        wanted = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if self.no_color or not (wanted or os.environ.get("FORCE_COLOR")):
            return text
        return f"\x1b[{colour}m{text}\x1b[0m"

    @staticmethod
    def _data(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def printable(text: str) -> str:
    """The text on one line, with whatever would move the cursor, change colours or reorder characters written as an escape."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _say(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:  # nobody is there to be told
        return
