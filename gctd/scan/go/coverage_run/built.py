"""Marks of the commits in a build cache, as empty files: a second scan of a commit needs no build step."""

from __future__ import annotations

import time
from pathlib import Path

RECENT = 4 * 86_400.0
"""Seconds for which it is believed: Go removes what it has not used for five days."""

YOUNG = 60.0
"""Age in seconds of files that are old for every step of a scan: Go makes no index of files younger than two seconds."""


def is_recent(file: Path) -> bool:
    """Whether this is built, and Go still has it."""
    try:
        return time.time() - file.stat().st_mtime < RECENT
    except FileNotFoundError:
        return False


def may_be_indexed(file: Path) -> bool:
    """Whether go makes an index of packages with this file, as of all older ones."""
    return time.time() - file.stat().st_mtime > YOUNG


def mark(file: Path) -> None:
    """Note that this is built now, and forget what Go may not have any more."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.touch()
    for other in list(file.parent.iterdir()):
        if not is_recent(other):
            other.unlink(missing_ok=True)
