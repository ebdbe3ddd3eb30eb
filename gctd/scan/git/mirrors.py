"""The upkeep of bare mirrors in the cache."""

from __future__ import annotations

from pathlib import Path

MOST_PACKS = 50
"""Packs that a mirror may have: each fetch leaves one, and git looks for an object in all of them."""

_LEFT = ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/pack/.tmp-*")


def has_many_packs(mirror: Path) -> bool:
    """Whether a mirror has the most packs that it may have: they have to become one."""
    return len(list(mirror.glob("objects/pack/*.pack"))) >= MOST_PACKS


def tidy(mirror: Path) -> None:
    """Remove the files that a killed git has left in a mirror. Nothing else may be at work in it."""
    for pattern in _LEFT:
        for path in mirror.glob(pattern):
            path.unlink(missing_ok=True)
