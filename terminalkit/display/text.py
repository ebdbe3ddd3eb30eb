"""How values look in a terminal: pure functions from a value to text without control characters."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

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
