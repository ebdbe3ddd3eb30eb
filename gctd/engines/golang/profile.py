"""Cover profiles, as `go test -coverprofile` writes them.

A profile is read once, in pieces. Blocks that occur several times (once per test binary under -coverpkg) are merged: covered
if any of them is.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import attrs
import msgspec

from gctd.engines.golang.files import open_regular

# Every line matches, lines other than blocks by the last group: one call finds all lines of a piece.
_LINES = re.compile(rb"^(?:(\S.*):(\d{1,9}\.\d{1,9},\d{1,9}\.\d{1,9} \d{1,9}) (\d{1,40})|(.*))$", re.MULTILINE)
_BETWEEN_NUMBERS = bytes.maketrans(b". ", b",,")
_ZEROS_BEFORE = re.compile(rb"(?<!\d)0+(?=\d)")
_PIECE = 1 << 20
_LONGEST_LINE = 1 << 16
_INT64 = 1 << 63
_INT64_DIGITS = 18
_COVERED = 1
_COVERED_INT64 = 2
_Row = tuple[bytes, bytes, bytes, bytes]
"""A line: path, position and count of a block, or another text."""
_COUNTED = (b",false,false", b",true,false", b",true,true")
"""Facts about a count, as the last two attributes of a block in JSON."""


class ProfileTooLarge(ValueError):
    """A cover profile is over a limit that the text names."""


class Block(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A piece of code that runs as a whole: lines and columns (from 1, in bytes; 0 if unknown), statements, covered.

    `counted`: go-crap takes it for covered. It does not if the count overflows 64 bits.
    """

    start_line: int
    start_col: int
    end_line: int
    end_col: int
    statements: int
    covered: bool
    counted: bool


@attrs.frozen
class CoverProfile:
    """A merged cover profile.

    `mode` is `set`, `count` or `atomic`, empty if the file has none. `digest` is the sha-256 of the file's bytes in hex,
    `size` their number. `malformed` counts the lines other than blocks, `first_malformed` is the number of the first.
    `overflows`: a count does not fit 64 bits.
    """

    mode: str = ""
    digest: str = ""
    size: int = 0
    blocks: int = 0
    malformed: int = 0
    first_malformed: int = 0
    overflows: bool = False
    _files: Mapping[str, Mapping[bytes, int]] = attrs.field(factory=dict, repr=False)
    _decoded: dict[str, list[Block]] = attrs.field(factory=dict, init=False, repr=False, eq=False)
    """Cache of the last path: each path is read twice, once for this engine's numbers and once for go-crap's."""

    def paths(self) -> list[str]:
        """The paths in the profile (import path and file name), sorted by their bytes."""
        return sorted(self._files, key=os.fsencode)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def blocks_of(self, path: str) -> list[Block]:
        """The blocks of one path in order of their start; empty for a path that the profile does not have."""
        if path not in self._decoded:
            self._decoded.clear()
            self._decoded[path] = sorted(_blocks(self._files.get(path, {})))
        return self._decoded[path]


_decode = msgspec.json.Decoder(list[Block]).decode


def _blocks(flags: Mapping[bytes, int]) -> list[Block]:
    """Blocks by way of JSON, of all ways to read many numbers by far the quickest."""
    found = b"],[".join([position + _COUNTED[flag] for position, flag in flags.items()]).translate(_BETWEEN_NUMBERS)
    if not found:
        return []
    try:
        return _decode(b"[[%b]]" % found)
    except msgspec.DecodeError:  # JSON has no numbers with needless zeros
        return _decode(b"[[%b]]" % _ZEROS_BEFORE.sub(b"", found))


def read_profile(path: Path, *, max_bytes: int, max_blocks: int) -> CoverProfile:
    """Read a cover profile. Lines other than blocks are counted, not fatal.

    `max_blocks` bounds the distinct blocks kept. Raises OSError and ProfileTooLarge.
    """
    with open_regular(path) as file:
        return parse_profile(file, max_bytes=max_bytes, max_blocks=max_blocks)


def parse_profile(file: BinaryIO, *, max_bytes: int, max_blocks: int) -> CoverProfile:
    """Read a cover profile as `read_profile` does, from an open file."""
    digest = hashlib.sha256()
    files: dict[str, dict[bytes, int]] = {}
    name, positions = b"", dict[bytes, int]()
    mode, overflows = "", False
    blocks = malformed = first_malformed = 0
    for number, (path, position, count, other) in enumerate(_rows(_pieces(file, digest.update, max_bytes)), 1):
        if not path:
            if not other:
                continue
            said = mode_of(other)
            if said is None or (mode and said != mode):
                malformed += 1
                first_malformed = first_malformed or number
            mode = mode or said or ""
            continue
        if path != name:
            name, positions = path, files.setdefault(os.fsdecode(path), {})
        flags = 0 if count == b"0" else _COVERED_INT64 if count == b"1" else _flags(count)
        overflows = overflows or flags == _COVERED
        known = positions.get(position)
        if known is None:
            blocks += 1
            if blocks > max_blocks:
                raise ProfileTooLarge(f"the cover profile has more than {max_blocks} blocks")
            positions[position] = flags
        elif flags > known:
            positions[position] = flags
    return CoverProfile(mode, digest.hexdigest(), file.tell(), blocks, malformed, first_malformed, overflows, files)


def _pieces(file: BinaryIO, update: Callable[[bytes], None], max_bytes: int) -> Iterator[bytes]:
    size = 0
    while piece := file.read(_PIECE):
        size += len(piece)
        if size > max_bytes:
            raise ProfileTooLarge(f"the cover profile has more than {max_bytes} bytes")
        update(piece)
        yield piece


def _rows(pieces: Iterator[bytes]) -> Iterator[_Row]:
    """The lines without the spaces around them."""
    for lines in _whole_lines(pieces):
        for row in _LINES.findall(lines):
            other = row[3]
            bare = other.strip()
            yield row if bare == other else _LINES.findall(bare)[0]


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Many lines at a time, without the last line feed; of a line that is far too long only the end."""
    rest = b""
    for piece in pieces:
        whole, ended, rest = (rest + piece).rpartition(b"\n")
        rest = rest[-_LONGEST_LINE:]
        if ended:
            yield whole
    yield rest


def mode_of(line: bytes) -> str | None:
    """Return the mode that a line of a profile names; None for another line."""
    return line.removeprefix(b"mode:").strip().decode("ascii", "replace") if line.startswith(b"mode:") else None


def _flags(count: bytes) -> int:
    if not count.strip(b"0"):
        return 0
    return _COVERED if len(count) > _INT64_DIGITS and int(count) >= _INT64 else _COVERED_INT64
