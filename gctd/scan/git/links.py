"""Symbolic links of a repository. Links that stay inside are created; links that point outside stay git's plain files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

LONGEST = 4096


def restore_links(root: Path, paths: Iterable[bytes]) -> tuple[str, ...]:
    """Replace the files at these paths (relative to `root`), which hold link targets, by links. Return the refused paths.

    A link is made if its target is relative, and exists inside `root` when every link on the way is followed. No other process
    may work in the directory.
    """
    root = root.resolve()
    waiting = {root / name: _target(root / name) for name in map(os.fsdecode, paths)}
    while True:
        found = {place: _destination(place, target) for place, target in waiting.items() if target is not None}
        good = [place for place, end in found.items() if end and end.is_relative_to(root) and end not in waiting]
        for place in good:
            target = waiting.pop(place)
            place.unlink()
            place.symlink_to(target or "")
        if not good:  # the rest leads out, nowhere, or in circles
            return tuple(sorted(str(place.relative_to(root)).encode(errors="replace").decode() for place in waiting))


def _target(place: Path) -> str | None:
    text = os.fsdecode(place.read_bytes()) if place.stat().st_size <= LONGEST else ""
    return text if text and not text.startswith("/") and "\0" not in text else None


def _destination(place: Path, target: str) -> Path | None:
    """Return the target of a link; None if the target is missing."""
    try:
        return (place.parent / target).resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return None
