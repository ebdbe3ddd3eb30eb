"""Symbolic links of a repository: those that stay inside become links, those that lead out stay the plain files git wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

LONGEST = 4096


def restore_links(root: Path, paths: Iterable[bytes]) -> tuple[str, ...]:
    """Make links of the files at these paths (relative to `root`), each of which holds its target; the paths that were refused.

    A link is made where its target is relative, and exists inside `root` when every link on the way is followed. Nothing else may
    be at work in the directory.
    """
    root = root.resolve()
    waiting = {name: _target(root / name) for name in map(os.fsdecode, paths)}
    while True:
        made = [name for name, target in waiting.items() if target is not None and _make(root, root / name, target)]
        for name in made:
            del waiting[name]
        if not made:  # the rest leads out, nowhere, or in circles
            return tuple(sorted(name.encode(errors="replace").decode() for name in waiting))


def _target(place: Path) -> str | None:
    text = os.fsdecode(place.read_bytes()) if place.stat().st_size <= LONGEST else ""
    return text if text and not text.startswith("/") and "\0" not in text else None


def _make(root: Path, place: Path, target: str) -> bool:
    """Put a link in the place of a file, if it stays inside; whether it was."""
    try:
        destination = (place.parent / target).resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return False
    if destination == place or not destination.is_relative_to(root):
        return False
    place.unlink()
    place.symlink_to(target)
    return True
