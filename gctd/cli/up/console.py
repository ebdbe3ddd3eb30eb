"""The output of `gctd up`: lines of the supervisor, and warnings and errors of its services."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any, TextIO

_ATTENTION = frozenset({"warning", "error", "critical", "exception"})
_USUAL = "listening on "
"""The line of a service that starts as it should."""
_NOT_SHOWN = frozenset({"event", "level", "timestamp", "logger", "exception"})


class Console:
    """Writes lines for a user. Structured log lines (JSON) below a warning are left out unless `verbose`.

    The system continues if the lines cannot be written: their reader is gone, or their disk is full.
    """

    def __init__(self, *, verbose: bool, stream: TextIO = sys.stderr) -> None:
        self._verbose = verbose
        self._stream = stream

    def say(self, text: str, *, name: str = "up") -> None:
        """Show a text, each line with the name of its service."""
        with suppress(OSError):
            print("\n".join(f"{name}: {line}" for line in text.splitlines()), file=self._stream, flush=True)

    def show(self, text: str) -> None:
        """Print a text for the user on standard output, as it is."""
        with suppress(OSError):
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def relay(self, name: str, line: str) -> None:
        """Show a line that a service wrote, if it is for the user."""
        entry = _entry(line)
        if self._verbose or (entry is None and line.strip() and not line.startswith(_USUAL)):
            self.say(line, name=name)
        elif entry is not None and entry.get("level") in _ATTENTION:
            rest = " ".join(f"{key}={value}" for key, value in entry.items() if key not in _NOT_SHOWN)
            trace = f"\n{entry['exception']}" if "exception" in entry else ""
            self.say(f"{entry['level']}: {entry.get('event', '')} {rest}".rstrip() + trace, name=name)


def _entry(line: str) -> dict[str, Any] | None:
    """The structured log entry in a line, None if it is plain text."""
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
