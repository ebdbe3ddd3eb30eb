"""Facts about one function: blocks, branches, marks of lines, and advice. A part that cannot be given has a reason instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import attrs

from gctd.engines.functions.advice import Advice, advise
from gctd.engines.functions.blocks import CountedBlock, agree, blocks_between
from gctd.engines.functions.structure import Branch, branches_of, parents_of
from gctd.engines.state import State

COVERED, UNCOVERED, PARTLY, NO_CODE = "+", "-", "~", " "
"""Marks of lines."""
_COMMENT = re.compile(rb"//[^\n]*")
_CODE = re.compile(rb"[\w\"'`\x80-\xff]")


class ScoredFunction(Protocol):
    """A function of a report."""

    @property
    def line(self) -> int: ...
    @property
    def end_line(self) -> int: ...
    @property
    def cyclomatic(self) -> int: ...
    @property
    def coverage(self) -> float | None: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str: ...


@attrs.frozen(kw_only=True)
class SourceLines:
    """Lines of a file: the text of the lines `first` to `last`, and the number of all lines."""

    first: int
    lines: tuple[str, ...]
    marks: str
    total: int


@attrs.frozen(kw_only=True)
class Explained:
    """A function. `blocks_reason` and `advice_reason` are empty if the blocks and the advice are known.

    `shown` and `branches` are empty without the source. `parents` has the parent of each block.
    """

    blocks: tuple[CountedBlock, ...]
    parents: tuple[int | None, ...]
    blocks_reason: str
    branches: tuple[Branch, ...]
    advice: Advice | None
    advice_reason: str
    shown: SourceLines | None


def explain(
    entry: ScoredFunction,
    in_file: Sequence[CountedBlock],
    *,
    content: bytes | None,
    threshold: float,
    around: int | None,
    no_blocks: str = "",
) -> Explained:
    """Explain a function. `in_file` are the blocks of its file; `no_blocks` is the reason if they are not known.

    `content` is the source of the file, None if it is not known. `around` is the number of lines to show before and after the
    function, None for the whole file.
    """
    every = content.split(b"\n") if content is not None else []
    own = every[entry.line - 1 : entry.end_line]
    blocks = blocks_between(in_file, entry.line, entry.end_line)
    reason = no_blocks or _why_no_blocks(entry, blocks)
    if reason:
        blocks = []
    parents = parents_of(blocks, own, entry.line)
    branches = branches_of(own, entry.line)
    advice, why = _advice(entry, blocks, parents, reason, threshold)
    return Explained(
        blocks=tuple(blocks),
        parents=tuple(parents),
        blocks_reason=reason,
        branches=tuple(branches) if len(branches) + 1 == entry.cyclomatic else (),
        advice=advice,
        advice_reason=why,
        shown=None if content is None else _shown(entry, every, () if reason else in_file, around),
    )


def _why_no_blocks(entry: ScoredFunction, blocks: Sequence[CountedBlock]) -> str:
    if not blocks:
        return "the coverage profile has no block of this function"
    if not agree(blocks, entry.coverage):
        return "the blocks of the coverage profile do not give the coverage of the report, so they are not shown"
    return ""


def _advice(
    entry: ScoredFunction, blocks: Sequence[CountedBlock], parents: Sequence[int | None], reason: str, threshold: float
) -> tuple[Advice | None, str]:
    if not State(entry.state).known:
        return None, f"the coverage is not known: {entry.reason or entry.state}"
    if reason and entry.cyclomatic <= threshold:
        return None, reason
    return advise(entry.cyclomatic, blocks, parents, threshold), ""


def _shown(entry: ScoredFunction, every: Sequence[bytes], blocks: Sequence[CountedBlock], around: int | None) -> SourceLines:
    total = len(every) - (every[-1] == b"")
    first, last = (1, total) if around is None else (max(1, entry.line - around), min(total, entry.end_line + around))
    lines = every[first - 1 : last]
    return SourceLines(
        first=first,
        lines=tuple(line.rstrip(b"\r").decode("utf-8", "replace") for line in lines),
        marks=marks_of(blocks_between(blocks, first, last), lines, first),
        total=total,
    )


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
