"""Coverage of each function of a file from the blocks of its cover profile.

A block belongs to the declaration that it overlaps, by line and column; this is the rule of `go tool cover -func`, used for
blocks and for statements alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush

import attrs

from gctd.engines.complexity import Declaration
from gctd.engines.profile import Block


@attrs.frozen
class Coverage:
    """What the tests reached of one declaration: blocks and statements, each all and covered."""

    blocks: int = 0
    blocks_covered: int = 0
    statements: int = 0
    statements_covered: int = 0

    @property
    def percent(self) -> float | None:
        """Covered blocks in percent; None where the declaration has no block."""
        return self.blocks_covered / self.blocks * 100 if self.blocks else None

    @property
    def statement_percent(self) -> float:
        """Covered statements in percent; 0 where there is none, as `go tool cover -func` prints it."""
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
        while first < len(blocks) and (blocks[first].end_line, blocks[first].end_col) <= declaration.start:
            first += 1
        result.append(count(_overlapping(declaration, blocks, first)))
    return result


def _overlapping(declaration: Declaration, blocks: Sequence[Block], first: int) -> Iterable[Block]:
    for index in range(first, len(blocks)):
        block = blocks[index]
        if (block.start_line, block.start_col) >= declaration.end:
            return
        if (block.end_line, block.end_col) > declaration.start:
            yield block


def attribute_printed(candidates: Sequence[Declaration], blocks: Iterable[Block]) -> tuple[list[Coverage], int]:
    """As `attribute`, for blocks under the name that `//line` directives give, by printed line.

    `candidates` are the declarations that have that name, of whatever files. The second result counts the blocks that could
    belong to several of them, or to none; they are left out.
    """
    found: list[list[Block]] = [[] for _ in candidates]
    left_out = 0
    for block, owners in _owners(candidates, sorted(blocks)):
        if len(owners) == 1:
            found[next(iter(owners))].append(block)
        else:
            left_out += 1
    return [count(own) for own in found], left_out


def _owners(candidates: Sequence[Declaration], blocks: Sequence[Block]) -> Iterator[tuple[Block, Collection[int]]]:
    """Each block with the indices of the declarations that have its line: one sweep over lines, whatever overlaps."""
    spans = sorted(
        (first, last, index)
        for index, declaration in enumerate(candidates)
        if declaration.printed is not None
        for first, last in declaration.printed.spans
    )
    upcoming = 0
    open_spans: list[tuple[int, int]] = []
    owners = Counter[int]()
    for block in blocks:
        line = block.start_line
        while upcoming < len(spans) and spans[upcoming][0] <= line:
            _, last, index = spans[upcoming]
            heappush(open_spans, (last, index))
            owners[index] += 1
            upcoming += 1
        while open_spans and open_spans[0][0] < line:
            _, index = heappop(open_spans)
            owners[index] -= 1
            if not owners[index]:
                del owners[index]
        yield block, owners
