"""Coverage of each function of a file from the blocks of its cover profile.

A block belongs to the declaration that it overlaps, by line and column; this is the rule of `go tool cover -func`, used for
blocks and for statements alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush

import msgspec

from gctd.engines.golang.complexity import Declaration
from gctd.engines.golang.profile import Block


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """Coverage of one declaration: blocks and statements, each all and covered.

    `doubtful`: further blocks may be its own or another declaration's, so its share is unknown.
    """

    blocks: int = 0
    blocks_covered: int = 0
    statements: int = 0
    statements_covered: int = 0
    doubtful: bool = False

    @property
    def percent(self) -> float | None:
        """Covered blocks in percent; None if unknown, as for a declaration without blocks."""
        return self.blocks_covered / self.blocks * 100 if self.blocks and not self.doubtful else None

    @property
    def statement_percent(self) -> float | None:
        """Covered statements in percent: 0 without statements, as `go tool cover -func` prints it. None as for `percent`."""
        if self.percent is None:
            return None
        return 100.0 * self.statements_covered / self.statements if self.statements else 0.0


def count(blocks: Iterable[Block]) -> Coverage:
    """The coverage that some blocks make together."""
    number = covered = statements = reached = 0
    for block in blocks:
        number += 1
        statements += block.statements
        if block.covered:
            covered += 1
            reached += block.statements
    return Coverage(number, covered, statements, reached)


def attribute(declarations: Sequence[Declaration], blocks: Sequence[Block]) -> list[Coverage]:
    """The coverage of each declaration of one file; both in order of their start, in physical lines and columns."""
    result = []
    first = 0
    for declaration in declarations:
        start, end = declaration.start, declaration.end
        while first < len(blocks) and (blocks[first].end_line, blocks[first].end_col) <= start:
            first += 1
        number = covered = statements = reached = 0
        for at in range(first, len(blocks)):
            block = blocks[at]
            if (block.start_line, block.start_col) >= end:
                break
            # Blocks may contain one another, so that one which ends before the declaration can come after one that does not.
            if (block.end_line, block.end_col) > start:
                number += 1
                statements += block.statements
                if block.covered:
                    covered += 1
                    reached += block.statements
        result.append(Coverage(number, covered, statements, reached))
    return result


def attribute_printed(candidates: Sequence[Declaration], blocks: Iterable[Block]) -> tuple[list[Coverage], int]:
    """Attribute blocks as `attribute` does, for blocks under a name of `//line` directives.

    `candidates` are the declarations with that name, in any file. Up to Go 1.26 the profile has printed lines and mostly no
    columns, from 1.27 on physical lines and columns. The second result counts the blocks without exactly one owner. They are left
    out, and the coverage of their possible owners is doubtful.
    """
    ordered = sorted(blocks)
    lines = _shared_out(len(candidates), _printed_spans(candidates), ordered)
    if not all(block.start_col for block in ordered):
        return lines
    places = _shared_out(len(candidates), _physical_spans(candidates), ordered)
    return places if places[1] <= lines[1] else lines


_Place = tuple[int, int]
_END_OF_LINE = 1 << 62


def _printed_spans(candidates: Sequence[Declaration]) -> Iterator[tuple[_Place, _Place, int]]:
    for index, declaration in enumerate(candidates):
        for first, last in declaration.printed.spans if declaration.printed else ():
            yield (first, 0), (last, _END_OF_LINE), index


def _physical_spans(candidates: Sequence[Declaration]) -> Iterator[tuple[_Place, _Place, int]]:
    for index, declaration in enumerate(candidates):
        line, after = declaration.end
        yield declaration.start, (line, after - 1), index


def _shared_out(
    count_of: int, spans: Iterable[tuple[_Place, _Place, int]], blocks: Sequence[Block]
) -> tuple[list[Coverage], int]:
    """Return the coverage of `count_of` declarations, and the number of blocks without exactly one owner.

    `spans` are the first and the last place and the index of each declaration.
    """
    found: list[list[Block]] = [[] for _ in range(count_of)]
    doubtful = set[int]()
    left_out = 0
    for block, owners in _owners(sorted(spans), blocks):
        if len(owners) == 1:
            found[next(iter(owners))].append(block)
        else:
            doubtful.update(owners)
            left_out += 1
    return [msgspec.structs.replace(count(own), doubtful=index in doubtful) for index, own in enumerate(found)], left_out


def _owners(spans: Sequence[tuple[_Place, _Place, int]], blocks: Sequence[Block]) -> Iterator[tuple[Block, Collection[int]]]:
    """Each block with the indices of the spans that it begins in: one sweep over places, whatever overlaps."""
    upcoming = 0
    open_spans: list[tuple[_Place, int]] = []
    owners = Counter[int]()
    for block in blocks:
        place = block.start_line, block.start_col
        while upcoming < len(spans) and spans[upcoming][0] <= place:
            _, last, index = spans[upcoming]
            heappush(open_spans, (last, index))
            owners[index] += 1
            upcoming += 1
        while open_spans and open_spans[0][0] < place:
            _, index = heappop(open_spans)
            owners[index] -= 1
            if not owners[index]:
                del owners[index]
        yield block, owners
