"""Cover profiles, as `go test -coverprofile` writes them.

A profile is read once, in pieces; blocks that occur several times (once per test binary under -coverpkg) are merged: covered
where any of them is.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import attrs

from gctd.engines.files import open_regular

_LINE = re.compile(rb"(.+):(\d{1,9}\.\d{1,9},\d{1,9}\.\d{1,9} \d{1,9}) (\d{1,40})")
_BETWEEN_NUMBERS = bytes.maketrans(b".,", b"  ")
_PIECE = 1 << 20
_LONGEST_LINE = 1 << 16
_INT64 = 1 << 63
_INT64_DIGITS = 18
_COVERED = 1
_COVERED_INT64 = 2


class ProfileTooLarge(ValueError):
    """A cover profile is over the limits; the text says which."""


class Block(NamedTuple):
    """A piece of code that runs as a whole: lines and columns (from 1, in bytes; 0 where unknown), statements, covered.

    `counted` says whether go-crap takes it for covered: it does not where the count overflows 64 bits.
    """

    start_line: int
    start_col: int
    end_line: int
    end_col: int
    statements: int
    covered: bool
    counted: bool


@attrs.frozen
class Profile:
    """A merged cover profile.

    `mode` is `set`, `count` or `atomic`, empty where the file does not say. `digest` is the sha-256 of the file's bytes in hex,
    `size` their number. `malformed` counts the lines that are no blocks, `first_malformed` is the number of the first.
    `overflows` says that a count does not fit 64 bits.
    """

    mode: str = ""
    digest: str = ""
    size: int = 0
    blocks: int = 0
    malformed: int = 0
    first_malformed: int = 0
    overflows: bool = False
    _files: Mapping[str, Mapping[bytes, int]] = attrs.field(factory=dict, repr=False)

    def paths(self) -> list[str]:
        """The paths in the profile (import path and file name), sorted by their bytes."""
        return sorted(self._files, key=os.fsencode)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def blocks_of(self, path: str) -> list[Block]:
        """The blocks of one path in order of their start; empty for a path that the profile does not have."""
        return sorted(_block(position, flags) for position, flags in self._files.get(path, {}).items())


def _block(position: bytes, flags: int) -> Block:
    start_line, start_col, end_line, end_col, statements = map(int, position.translate(_BETWEEN_NUMBERS).split())
    return Block(start_line, start_col, end_line, end_col, statements, flags >= _COVERED, flags == _COVERED_INT64)


def read_profile(path: Path, *, max_bytes: int, max_blocks: int) -> Profile:
    """Reads a cover profile; lines that are no blocks are counted, not fatal.

    `max_blocks` bounds the distinct blocks kept. Raises OSError and ProfileTooLarge.
    """
    with open_regular(path) as file:
        return parse_profile(file, max_bytes=max_bytes, max_blocks=max_blocks)


def parse_profile(file: BinaryIO, *, max_bytes: int, max_blocks: int) -> Profile:
    """As `read_profile`, from an open file."""
    digest = hashlib.sha256()
    files: dict[str, dict[bytes, int]] = {}
    name, positions = b"", dict[bytes, int]()
    mode, overflows = "", False
    blocks = malformed = first_malformed = 0
    for number, line in enumerate(_lines(_pieces(file, digest.update, max_bytes)), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            if not line:
                continue
            said = _mode_of(line)
            if said is None or (mode and said != mode):
                malformed += 1
                first_malformed = first_malformed or number
            mode = mode or said or ""
            continue
        path, position, count = match.groups()
        if path != name:
            name, positions = path, files.setdefault(os.fsdecode(path), {})
        flags = _flags(count)
        overflows = overflows or flags == _COVERED
        known = positions.get(position)
        if known is None:
            blocks += 1
            if blocks > max_blocks:
                raise ProfileTooLarge(f"the cover profile has more than {max_blocks} blocks")
            positions[position] = flags
        elif flags > known:
            positions[position] = flags
    return Profile(mode, digest.hexdigest(), file.tell(), blocks, malformed, first_malformed, overflows, files)


def _pieces(file: BinaryIO, update: Callable[[bytes], None], max_bytes: int) -> Iterator[bytes]:
    size = 0
    while piece := file.read(_PIECE):
        size += len(piece)
        if size > max_bytes:
            raise ProfileTooLarge(f"the cover profile has more than {max_bytes} bytes")
        update(piece)
        yield piece


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Lines without the spaces around them; of a line that is far too long only the end."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        yield from map(bytes.strip, whole)
    yield rest.strip()


def _mode_of(line: bytes) -> str | None:
    return line.removeprefix(b"mode:").strip().decode("ascii", "replace") if line.startswith(b"mode:") else None


def _flags(count: bytes) -> int:
    if not count.strip(b"0"):
        return 0
    return _COVERED if len(count) > _INT64_DIGITS and int(count) >= _INT64 else _COVERED_INT64
