"""Marks of lines: whether tests ran their code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gctd.engines.functions.blocks import CountedBlock

COVERED, UNCOVERED, PARTLY, NO_CODE = "+", "-", "~", " "

_COMMENT = re.compile(rb"//[^\n]*")
_CODE = re.compile(rb"[\w\"'`\x80-\xff]")


def marks_of(blocks: Sequence[CountedBlock], lines: Sequence[bytes], first: int) -> str:
    """Return a mark for each line: `+` covered, `-` not covered, `~` both, a space for a line without code of a block.

    `lines` are the lines from the number `first` on. A part of a line counts if it has more than braces, punctuation and a
    comment to the end of the line.
    """
    marks = [NO_CODE] * len(lines)
    for block in blocks:
        mark = COVERED if block.covered else UNCOVERED
        for number in range(max(block.start_line, first), min(block.end_line, first + len(lines) - 1) + 1):
            at = number - first
            if marks[at] not in (mark, PARTLY) and _CODE.search(_COMMENT.sub(b"", _part(block, number, lines[at]))):
                marks[at] = mark if marks[at] == NO_CODE else PARTLY
    return "".join(marks)


def _part(block: CountedBlock, number: int, line: bytes) -> bytes:
    """Return the part of a line that belongs to a block."""
    starts = block.start_col - 1 if number == block.start_line else 0
    ends = block.end_col - 1 if number == block.end_line else len(line)
    return line[max(starts, 0) : max(ends, 0)]
