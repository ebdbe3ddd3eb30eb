"""The blocks of one function in a cover profile, with their counts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from gctd.engines.golang.profile import mode_of

_POSITION = re.compile(rb"(\d{1,9})\.(\d{1,9}),(\d{1,9})\.(\d{1,9}) (\d{1,9}) (\d{1,40})\s*")
_NEARLY = 1e-9


class CountedBlock(msgspec.Struct, frozen=True, order=True, gc=False):
    """A piece of code that runs as a whole: lines and columns (from 1, in bytes; `end_col` is after it), statements, runs."""

    start_line: int
    start_col: int
    end_line: int
    end_col: int
    statements: int
    count: int

    @property
    def covered(self) -> bool:
        """Whether a test ran it."""
        return self.count > 0


def counts_runs(profile: bytes) -> bool:
    """Whether the counts of a profile are numbers of runs: in mode `set` a count is 0 or 1."""
    return mode_of(profile[:64].partition(b"\n")[0]) in ("count", "atomic")


def blocks_of_file(profile: bytes, path: str) -> list[CountedBlock]:
    """Return the blocks of a file in order of their start. `path` is its path in the profile.

    A block that occurs several times (once for each test binary) is merged: its counts are added.
    """
    found: dict[tuple[int, int, int, int, int], int] = {}
    for text in _lines_of(profile, os.fsencode(path) + b":"):
        match = _POSITION.fullmatch(text)
        if match is not None:
            line, column, last, after, statements, count = map(int, match.groups())
            position = line, column, last, after, statements
            found[position] = found.get(position, 0) + count
    return sorted(CountedBlock(*position, count) for position, count in found.items())


def _lines_of(profile: bytes, start: bytes) -> Iterator[bytes]:
    """Yield the rest of each line that begins with `start`. A search for bytes is much faster than a look at each line."""
    at = 0 if profile.startswith(start) else profile.find(b"\n" + start)
    while at >= 0:
        begins = at + len(start) + profile.startswith(b"\n", at)
        end = profile.find(b"\n", begins)
        yield profile[begins : end if end >= 0 else len(profile)]
        at = profile.find(b"\n" + start, end) if end >= 0 else -1


def blocks_between(blocks: Sequence[CountedBlock], first: int, last: int) -> list[CountedBlock]:
    """Return the blocks that overlap the lines `first` to `last`."""
    return [block for block in blocks if block.end_line >= first and block.start_line <= last]


def agree(blocks: Sequence[CountedBlock], coverage: float | None) -> bool:
    """Whether these blocks have the coverage (per cent of blocks) that the report has for the function."""
    if not blocks or coverage is None:
        return False
    return abs(sum(block.covered for block in blocks) / len(blocks) * 100 - coverage) < _NEARLY
