"""The builds of Go's library from earlier runs of the tests. They save a quarter of a minute for each cold cache."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support import ROOT

_KEPT = ROOT / ".pytest_cache" / "d" / "builds"


def give(cache: Path) -> None:
    """Put the kept builds into a worker's cache directory, if it has none."""
    if not any((cache / "builds").glob("std-*")):
        _copy(_KEPT, cache / "builds")


def keep(cache: Path) -> None:
    """Keep what a worker, which has ended, built."""
    _copy(cache / "builds", _KEPT)


def _copy(source: Path, target: Path) -> None:
    for directory in source.glob("std-*"):
        if directory.is_dir():
            shutil.copytree(directory, target / directory.name, dirs_exist_ok=True)
