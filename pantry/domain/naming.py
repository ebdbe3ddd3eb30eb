"""Names as a reader sees them: two that look alike are one name, and a name has something to see."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible characters, in a class of a regular expression: controls, fillers, and the ignorable ones of Unicode."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def look(name: str) -> str:
    """The look of a name: without case, invisible characters and surplus spaces, in one form of Unicode (NFKC).

    It is empty if there is nothing to see.
    """
    if name.isascii() and name.isprintable():
        return " ".join(name.lower().split())
    spaced = " ".join(unicodedata.normalize("NFKC", name).split())
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", spaced).lower())
    return " ".join(plain.split())
