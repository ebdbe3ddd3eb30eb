"""The output of `gctd up`: lines of the supervisor, and warnings and errors of its services."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import suppress
from typing import Any, TextIO

_ATTENTION = frozenset({"warning", "error", "critical", "exception"})
_USUAL = "listening on "
"""The line of a service that starts as it should."""
_NOT_SHOWN = frozenset({"event", "level", "timestamp", "logger", "exception"})
_LONG = 120
"""Characters of values; longer ones have their own lines."""
_ERASE = "\r\x1b[K"
"""To the begin of the line, and erase it (ECMA-48: EL)."""


class Console:
    """Writes lines for a user. Structured log lines (JSON) below a warning are left out unless `verbose`.

    On a terminal one line at the end is redrawn. The system continues if the lines cannot be written: their reader is gone, or
    their disk is full.
    """

    def __init__(self, *, verbose: bool, stream: TextIO | None = None) -> None:
        self._verbose = verbose
        self._stream = stream or sys.stderr
        self._drawn = False
        self.ending = False
        """Whether services are being ended. Their plain text is in their logs only."""

    @property
    def draws(self) -> bool:
        """Whether a line can be redrawn."""
        return self._stream.isatty()

    def say(self, text: str, *, name: str = "up") -> None:
        """Show a text, each line with the name of its service."""
        self._write("".join(f"{name}: {line}\n" for line in text.splitlines()))

    def draw(self, text: str) -> None:
        """Show a text in the line that is redrawn, which ends at the next line; an empty text erases it."""
        room = shutil.get_terminal_size().columns - 1
        self._write(f"up: {text}"[:room] if text else "")
        self._drawn = bool(text)

    def show(self, text: str) -> None:
        """Print a text for the user on standard output, as it is."""
        self.draw("")
        with suppress(OSError):
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def relay(self, name: str, line: str) -> None:
        """Show a line that a service wrote, if it is for the user."""
        entry = _entry(line)
        is_text = entry is None and line.strip() and not line.startswith(_USUAL) and not self.ending
        if self._verbose or is_text:
            self.say(line, name=name)
        elif entry is not None and entry.get("level") in _ATTENTION:
            self.say(_in_words(entry), name=name)

    def _write(self, text: str) -> None:
        erased = _ERASE if self._drawn else ""
        self._drawn = False
        if erased or text:
            with suppress(OSError):
                self._stream.write(f"{erased}{text}")
                self._stream.flush()


def _in_words(entry: dict[str, Any]) -> str:
    """Return an entry as text: in one line, or with a line for each of its values if they are long."""
    first = f"{entry['level']}: {entry.get('event', '')}"
    values = {key: value for key, value in entry.items() if key not in _NOT_SHOWN}
    rest = " ".join(f"{key}={value}" for key, value in values.items())
    if len(rest) > _LONG:
        first = "\n".join([first, *(f"  {key}: {value}" for key, value in values.items())])
    else:
        first = f"{first} {rest}".rstrip()
    return "\n".join([first, *([str(entry["exception"])] if "exception" in entry else [])])


def _entry(line: str) -> dict[str, Any] | None:
    """The structured log entry in a line, None if it is plain text."""
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
