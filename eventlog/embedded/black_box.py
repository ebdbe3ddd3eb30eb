"""The last blocks of each stream, copied aside before a start after an unclean stop.

After a crash nats-server scans the blocks when it starts, and cuts a file at the first record that it cannot read: the
records after it are gone, also whole ones. The copies are the only other place that has them. If the blocks are as they were at
the last copy, they are not copied again: a server that cannot be started does not push the first copy out.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

BESIDE = "before-recovery"
"""The directory of the copies, in the data directory."""
_KEPT = 2
_RUNNING = "running"
_BLOCKS = "**/streams/*/msgs"
_MOST_BYTES = 8 * 1024**2
"""Bytes of blocks that are copied of each stream at least, from its end."""


class BlackBox:
    """Keeps the copies of one data directory. A marker file is in it from each start to a stop in good order."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._running = data_dir / _RUNNING

    def before_start(self) -> Path | None:
        """Copy the last blocks aside if the last stop was unclean. Return their directory; None if none were copied.

        Raises OSError.
        """
        aside = self._copied() if self._running.exists() else None
        self._running.touch()
        return aside

    def after_stop(self) -> None:
        """The server has ended in good order."""
        self._running.unlink(missing_ok=True)

    def _copied(self) -> Path | None:
        aside = self._data_dir / BESIDE / datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S.%fZ")
        found = {
            Path(blocks.parent.name, block.name): block for blocks in self._data_dir.glob(_BLOCKS) for block in _last(blocks)
        }
        older = sorted((self._data_dir / BESIDE).glob("*"))
        if not found or (older and _is_copy(older[-1], found)):
            return None
        unfinished = self._data_dir / f"{BESIDE}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        for place, block in found.items():
            (unfinished / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(block, unfinished / place)
        aside.parent.mkdir(exist_ok=True)
        unfinished.rename(aside)
        for one in [*older, aside][:-_KEPT]:
            shutil.rmtree(one)
        log.warning("nats-server was not stopped in good order: the last blocks of its streams are copied aside", to=str(aside))
        return aside


def _is_copy(directory: Path, blocks: Mapping[Path, Path]) -> bool:
    """Whether a directory has exactly these blocks, with the same bytes."""
    there = {file.relative_to(directory) for file in directory.rglob("*.blk")}
    return there == set(blocks) and all(filecmp.cmp(block, directory / place, shallow=False) for place, block in blocks.items())


def _last(blocks: Path) -> list[Path]:
    """The last blocks of a stream, newest first."""
    found, size = [], 0
    for block in sorted(blocks.glob("*.blk"), key=lambda block: int(block.stem), reverse=True):
        if size >= _MOST_BYTES:
            break
        found.append(block)
        size += block.stat().st_size
    return found
